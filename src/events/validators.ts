import { randomUUID } from 'node:crypto';
import type { Deps } from '../deps.js';
import { KEYS, reply } from '../store/redis.js';
import type { EventMessage } from './catalogue.js';
import type { Handlers, Reason, Verdict } from './handlers.js';

/** Those who may object to a deletion. */
export interface DeletionValidators {
  /** Asks modules of this process and services over Redis, and gives all their reasons; never fails. Takes 2 s at most. */
  ask(question: { userId: string; email: string }): Promise<Verdict>;
}

type Needs = Pick<Deps, 'config' | 'log' | 'redis' | 'scripts' | 'clock'>;

const CHANNEL = 'identity.user.pre_deletion_validate';
/** How long answers count. */
export const DEADLINE_MS = 2000;
/** How long the list of answers stays: far longer than a service is late, since it catches late answers. */
const ANSWERS_MS = 600_000;
const LOOK_MS = 15;
/** Answers read at one look, and the longest that is understood, in characters. */
const MOST_ANSWERS = 100;
const LONGEST_ANSWER = 4096;

export function createDeletionValidators(needs: Needs, handlers: Pick<Handlers, 'validate'>): DeletionValidators {
  return {
    async ask(question) {
      const [here, remote] = await Promise.all([handlers.validate(question, DEADLINE_MS), askServices(needs, question)]);
      return { reasons: [...here.reasons, ...remote.reasons], unavailable: [...here.unavailable, ...remote.unavailable] };
    },
  };
}

async function askServices(needs: Needs, question: { userId: string; email: string }): Promise<Verdict> {
  const end = performance.now() + DEADLINE_MS;
  const validators = needs.config.deletionValidators;
  const required = validators.filter((validator) => validator.required).map((validator) => validator.source);
  const validationId = randomUUID();
  const answers = KEYS.deletionAnswers(validationId);
  const message = JSON.stringify(questionOf(question, validationId, answers, needs.clock.now()));
  try {
    await needs.scripts.deletionAsk({ answers }, { keepMs: ANSWERS_MS, channel: CHANNEL, message });
  } catch (error) {
    needs.log.warn({ err: error }, 'nobody could be asked about a deletion');
    // The event must go out before a deletion, even when nobody has to answer it.
    return { reasons: [], unavailable: required.length > 0 ? required : ['redis'] };
  }

  const reasons: Reason[] = [];
  let ignored = 0;
  const silent = new Set(validators.map((validator) => validator.source));
  // The first element is the empty one that gave the list its TTL.
  for (let next = 1; silent.size > 0 && performance.now() < end; ) {
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    const raw = await reply(needs.redis.lrange(answers, next, next + MOST_ANSWERS - 1)).catch(() => []);
    next += raw.length;
    for (const answer of raw.map(readAnswer)) {
      if (!answer || !validators.some((validator) => validator.source === answer.source)) {
        ignored += 1;
        continue;
      }
      silent.delete(answer.source);
      if (answer.reason !== undefined) reasons.push({ source: answer.source, reason: answer.reason });
    }
  }
  if (ignored > 0) needs.log.warn({ validationId, ignored }, 'answers about a deletion were malformed, or of services that DELETION_VALIDATORS does not name');
  if (silent.size > 0) needs.log.warn({ validationId, silent: [...silent] }, 'not every service answered about a deletion in time');
  return { reasons, unavailable: required.filter((source) => silent.has(source)) };
}

const questionOf = (question: { userId: string; email: string }, validationId: string, replyTo: string, now: number): EventMessage<typeof CHANNEL> => ({
  id: randomUUID(),
  type: CHANNEL,
  time: new Date(now).toISOString(),
  userId: question.userId,
  email: question.email,
  validationId,
  replyTo,
  deadline: new Date(now + DEADLINE_MS).toISOString(),
});

/** `{"source"}` agrees, `{"source", "reason"}` blocks; null for anything else, an empty reason included. */
function readAnswer(raw: string): { source: string; reason?: string } | null {
  if (raw.length > LONGEST_ANSWER) return null;
  try {
    const { source, reason } = JSON.parse(raw) as { source?: unknown; reason?: unknown };
    if (typeof source !== 'string') return null;
    if (reason === undefined) return { source };
    return typeof reason === 'string' && reason.trim() !== '' ? { source, reason } : null;
  } catch {
    return null;
  }
}
