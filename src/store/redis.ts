import type { Writable } from 'node:stream';
import { Redis, ReplyError } from 'ioredis';
import { ApiError } from '../errors.js';
import type { Log } from '../log.js';

export type { Redis } from 'ioredis';

/** How long one command may take before it counts as failed, in ms. */
const COMMAND_MS = 800;
/** A connection that is given up is gone after so long, in ms. */
const GIVE_UP_MS = 100;

/** A client that fails at once while Redis is away, and comes back by itself. */
export function createRedis(url: string, log: Log): Redis {
  // Many commands fail together; the connection needs to be given up only once.
  let givenUpAt = -Infinity;
  const isFirst = (): boolean => {
    const before = givenUpAt;
    givenUpAt = performance.now();
    return givenUpAt - before > GIVE_UP_MS;
  };
  const redis = new Redis(url, {
    lazyConnect: true,
    enableOfflineQueue: false,
    connectTimeout: COMMAND_MS,
    commandTimeout: COMMAND_MS,
    disconnectTimeout: GIVE_UP_MS / 2,
    maxRetriesPerRequest: 0,
    retryStrategy: (times) => Math.min(50 * 2 ** Math.min(times, 5), 1000),
    // After a failover the old primary answers READONLY: connect anew to find the new one.
    reconnectOnError: (error) => error.message.startsWith('READONLY') && isFirst(),
  });
  redis.on('error', (error: Error) => log.debug({ reason: error.message }, 'redis connection lost'));
  redis.on('ready', () => void warnOfEviction(redis, log));
  giveUpHung(redis, isFirst);
  sendByTurns(redis);
  return redis;
}

/** A Redis that makes room by itself forgets locks, limits and codes; a full one is better refused. */
async function warnOfEviction(redis: Redis, log: Log): Promise<void> {
  const memory = await redis.info('memory').catch(() => '');
  const policy = /^maxmemory_policy:(\S+)/m.exec(memory)?.[1] ?? 'noeviction';
  if (policy !== 'noeviction') log.warn({ policy }, 'Redis drops keys when it is full, locks and codes among them: set its maxmemory-policy to noeviction');
}

/**
 * Redis answers in order: behind one command that gets no answer none gets one. The connection is given up then, so
 * that commands fail at once, and are not left for Redis to run when it wakes, until a new one is ready.
 */
function giveUpHung(redis: Redis, isFirst: () => boolean): void {
  const send = redis.sendCommand.bind(redis);
  redis.sendCommand = (command, stream) => {
    command.promise.catch((error: unknown) => {
      if ((error as Error).message === 'Command timed out' && redis.status === 'ready' && isFirst()) redis.disconnect(true);
    });
    return send(command, stream);
  };
}

/**
 * Commands of one event-loop turn leave in one write: a system call for each costs more than Redis takes to answer it.
 * Unlike a pipeline this leaves each command its own errors, retries (NOSCRIPT) and timeout.
 */
function sendByTurns(redis: Redis): void {
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
