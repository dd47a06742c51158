import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Deps } from '../deps.js';
import { EVENT_TYPES, isEventType, type EventMessage, type EventType } from './catalogue.js';

/** What a pre-deletion handler gets. */
export interface PreDeletion {
  userId: string;
  email: string;
  /** Blocks the deletion: the name of the objecting service and its reason, as the owner will read it. */
  addBlockingReason(source: string, reason: string): void;
}

export type HandlerArgument<T extends EventType> = T extends 'identity.user.pre_deletion_validate' ? PreDeletion : EventMessage<T>;

/** What a module of IDENTITY_HANDLERS exports by default; called once at start. */
export type HandlerModule = (events: { on<T extends EventType>(type: T, handler: (event: HandlerArgument<T>) => unknown): void }) => unknown;

export interface Reason {
  source: string;
  reason: string;
}

/** What was found out about a deletion. It may go on only when both lists are empty. */
export interface Verdict {
  reasons: Reason[];
  /** Those who must agree and could not be heard. */
  unavailable: string[];
}

/** The modules of IDENTITY_HANDLERS at work. */
export interface Handlers {
  /** Asks every pre-deletion handler; one that throws or takes longer than `ms` is unavailable. */
  validate(question: { userId: string; email: string }, ms: number): Promise<Verdict>;
  /** Hands published messages on, to each handler one after the other; settles when all were handled, never fails. */
  deliver(messages: string[]): Promise<void>;
  /** Messages that wait for a handler. */
  waiting(): number;
}

/** A handler that takes longer is given up, so that those after it are not held for ever, in ms. */
const HANDLER_MS = 2000;

interface Subscription {
  module: string;
  handler: (event: never) => unknown;
  /** Settles when this handler has seen every message handed to it. */
  tail: Promise<void>;
}

/**
 * Loads the modules of IDENTITY_HANDLERS, paths from the working directory.
 * @throws an Error that names the module that cannot be used
 */
export async function loadHandlers({ config, log }: Pick<Deps, 'config' | 'log'>): Promise<Handlers> {
  const subscriptions = new Map<EventType, Subscription[]>(EVENT_TYPES.map((type) => [type, []]));
  for (const module of config.identityHandlers) await register(module, subscriptions);
  let waiting = 0;

  async function handle({ module, handler }: Subscription, type: EventType, message: string): Promise<void> {
    try {
      // Parsed for each handler anew: what one of them changes must not reach the next.
      await settled(HANDLER_MS, () => handler(JSON.parse(message) as never));
    } catch (error) {
      log.error({ err: error, module, event: type }, 'an event handler failed');
    } finally {
      waiting -= 1;
    }
  }

  async function ask({ module, handler }: Subscription, question: { userId: string; email: string }, ms: number): Promise<Verdict> {
    const reasons: Reason[] = [];
    const addBlockingReason = (source: string, reason: string): void => {
      if (typeof source !== 'string' || typeof reason !== 'string') throw new TypeError('addBlockingReason takes two strings, the name of the service and its reason');
      reasons.push({ source, reason });
    };
    try {
      await settled(ms, () => handler({ ...question, addBlockingReason } as never));
      return { reasons: [...reasons], unavailable: [] };
    } catch (error) {
      log.error({ err: error, module, event: 'identity.user.pre_deletion_validate' }, 'a pre-deletion handler failed');
      return { reasons: [...reasons], unavailable: [module] };
    }
  }

  return {
    async validate(question, ms) {
      const asked = subscriptions.get('identity.user.pre_deletion_validate')!;
      const verdicts = await Promise.all(asked.map((subscription) => ask(subscription, question, ms)));
      return { reasons: verdicts.flatMap((verdict) => verdict.reasons), unavailable: verdicts.flatMap((verdict) => verdict.unavailable) };
    },
    async deliver(messages) {
      const tails = new Set<Promise<void>>();
      for (const message of messages) {
        const { type } = JSON.parse(message) as { type: EventType };
        for (const subscription of subscriptions.get(type) ?? []) {
          waiting += 1;
          subscription.tail = subscription.tail.then(() => handle(subscription, type, message));
          tails.add(subscription.tail);
        }
      }
      await Promise.all(tails);
    },
    waiting: () => waiting,
  };
}

async function register(module: string, subscriptions: Map<EventType, Subscription[]>): Promise<void> {
  const unusable = (what: string, cause?: unknown): Error => new Error(`IDENTITY_HANDLERS: ${module} ${what}`, { cause });
  const loaded = await (import(pathToFileURL(resolve(module)).href) as Promise<{ default?: unknown }>).catch((error: unknown) => {
    throw unusable(`cannot be loaded: ${text(error)}`, error);
  });
  if (typeof loaded.default !== 'function') throw unusable('does not export a function by default');

  const on = (type: string, handler: unknown): void => {
    if (!isEventType(type)) throw new Error(`there is no event ${type}; there are ${EVENT_TYPES.join(', ')}`);
    if (typeof handler !== 'function') throw new TypeError(`the handler of ${type} is not a function`);
    subscriptions.get(type)!.push({ module, handler: handler as Subscription['handler'], tail: Promise.resolve() });
  };
  try {
    await (loaded.default as HandlerModule)({ on });
  } catch (error) {
    throw unusable(`failed at start: ${text(error)}`, error);
  }
}

/** Settles like `work`, or fails after `ms`; a throw before its first await is a failure too. */
async function settled(ms: number, work: () => unknown): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no end within ${ms} ms`)), ms);
  });
  try {
    await Promise.race([new Promise((resolve) => resolve(work())), late]);
  } finally {
    clearTimeout(timer);
  }
}

const text = (error: unknown): string => (error instanceof Error ? error.message : String(error));
