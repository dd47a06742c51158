import type { Writable } from 'node:stream';
import { Redis as Single, ReplyError, type Cluster } from 'ioredis';
import { ApiError } from '../errors.js';
import type { Log } from '../log.js';
import { clusterAddress } from '../redis-url.js';
import { createCluster, demandPrimaries } from './cluster.js';

/** One server or a cluster of them: what commands promise is the same. */
export type Redis = Single | Cluster;

/** How long one command may take before it counts as failed, in ms. */
const COMMAND_MS = 800;
/** A connection that is given up is gone after so long, in ms. */
const GIVE_UP_MS = 100;

const OPTIONS = {
  lazyConnect: true,
  connectTimeout: COMMAND_MS,
  commandTimeout: COMMAND_MS,
  disconnectTimeout: GIVE_UP_MS / 2,
  maxRetriesPerRequest: 0,
};

/** How long to wait before the n-th attempt to connect, in ms. */
const pauseMs = (attempt: number): number => Math.min(50 * 2 ** Math.min(attempt, 5), 1000);

/** A client that fails at once while Redis is away, and comes back by itself. */
export function createRedis(url: string, log: Log): Redis {
  const address = clusterAddress(url);
  if (address) {
    // A redirected command is on two connections: only the one that it waits for may be given up.
    const last = new WeakMap<object, Single>();
    return createCluster(address, OPTIONS, pauseMs, (node) => tend(node, createOnce(), log, last), log);
  }
  const isFirst = createOnce();
  const redis = new Single(url, {
    ...OPTIONS,
    enableOfflineQueue: false,
    retryStrategy: pauseMs,
    // After a failover the old primary answers READONLY: connect anew to find the new one.
    reconnectOnError: (error) => error.message.startsWith('READONLY') && isFirst(),
  });
  redis.on('error', (error: Error) => log.debug({ reason: error.message }, 'redis connection lost'));
  tend(redis, isFirst, log);
  return redis;
}

/** Many commands fail together; their connection needs to be given up only once. */
function createOnce(): () => boolean {
  let givenUpAt = -Infinity;
  return () => {
    const before = givenUpAt;
    givenUpAt = performance.now();
    return givenUpAt - before > GIVE_UP_MS;
  };
}

/** What every connection gets, alone or of a cluster. */
function tend(redis: Single, isFirst: () => boolean, log: Log, last?: WeakMap<object, Single>): void {
  redis.on('ready', () => void warnOfEviction(redis, log));
  giveUpHung(redis, isFirst, last);
  sendByTurns(redis);
}

/** A Redis that makes room by itself forgets locks, limits and codes; a full one is better refused. */
async function warnOfEviction(redis: Single, log: Log): Promise<void> {
  const memory = await redis.info('memory').catch(() => '');
  const policy = /^maxmemory_policy:(\S+)/m.exec(memory)?.[1] ?? 'noeviction';
  if (policy !== 'noeviction') log.warn({ policy }, 'Redis drops keys when it is full, locks and codes among them: set its maxmemory-policy to noeviction');
}

/**
 * Redis answers in order: behind one command that gets no answer none gets one. The connection is given up then, so
 * that commands fail at once, and are not left for Redis to run when it wakes, until a new one is ready.
 */
function giveUpHung(redis: Single, isFirst: () => boolean, last?: WeakMap<object, Single>): void {
  const send = redis.sendCommand.bind(redis);
  redis.sendCommand = (command, stream) => {
    last?.set(command, redis);
    command.promise.catch((error: unknown) => {
      if ((error as Error).message !== 'Command timed out' || (last && last.get(command) !== redis)) return;
      if (redis.status === 'ready' && isFirst()) redis.disconnect(true);
    });
    return send(command, stream);
  };
}

/**
 * Commands of one event-loop turn leave in one write: a system call for each costs more than Redis takes to answer it.
 * Unlike a pipeline this leaves each command its own errors, retries (NOSCRIPT) and timeout.
 */
function sendByTurns(redis: Single): void {
  const send = redis.sendCommand.bind(redis);
  let corked: { uncork(): void } | null = null;
  redis.sendCommand = (command, stream) => {
    const socket = redis.status === 'ready' && !stream ? (redis as unknown as { stream: Writable }).stream : null;
    if (socket && corked !== socket) {
      corked = socket;
      socket.cork();
      setImmediate(() => {
        corked = null;
        socket.uncork();
      });
    }
    return send(command, stream);
  };
}

/** Errors that mean "down for now" although Redis answered. OOM is down, never "allowed". */
const DOWN = /^(READONLY|LOADING|CLUSTERDOWN|TRYAGAIN|MASTERDOWN|MISCONF|OOM|NOREPLICAS|BUSY|UNKILLABLE)/;

/** Waits for a reply; whatever says that Redis is away becomes UNAVAILABLE. */
export async function reply<T>(command: Promise<T>): Promise<T> {
  try {
    return await command;
  } catch (error) {
    if (error instanceof (ReplyError as unknown as new () => Error) && !DOWN.test(error.message)) throw error;
    throw new ApiError('UNAVAILABLE', { retryAfter: 1 }, { cause: error });
  }
}

/**
 * Fails with UNAVAILABLE unless Redis answers. Of a cluster `any` primary must: while one is away the others serve.
 * `every` is for work whose keys are not known yet.
 */
export const demandRedis = async (redis: Redis, which: 'any' | 'every'): Promise<void> => {
  await reply<unknown>(redis instanceof Single ? redis.ping() : demandPrimaries(redis, which));
};

/** Every Redis key of the service. What stands in braces is the hash tag: the keys of one script share it. */
export const KEYS = {
  /** Failures, delay and lock of one account identity, or of one familiar source of it. */
  gate: (identity: string, source: string | null): string => `idp:{${identity}}:gate:${source ?? 'all'}`,
  /** Attempts of that bucket that are being verified now. */
  gateHeld: (identity: string, source: string | null): string => `idp:{${identity}}:held:${source ?? 'all'}`,
  /** One sliding window. */
  limit: (name: string, counted: string): string => `idp:{${counted}}:limit:${name}`,
  /** The newest code of an account for one purpose, with its failed attempts. */
  otp: (account: string, use: 'delete' | 'restore'): string => `idp:{${account}}:otp:${use}`,
  /** When codes were issued to an account. */
  otpIssues: (account: string): string => `idp:{${account}}:otp-issues`,
  /** A redirect flow that waits for its provider, by the hash of its state. */
  oauthFlow: (state: string): string => `idp:{${state}}:oauth`,
  /** The stream of events; the contract with consumers, and the only key without a TTL. */
  events: 'idp:events',
  /** Names the relay that publishes now. Its tag is the whole name of the stream, so that both share a slot. */
  relayLease: 'idp:{idp:events}:relay',
  /** What services answer to one question about a deletion. */
  deletionAnswers: (validationId: string): string => `idp:{${validationId}}:answers`,
};
