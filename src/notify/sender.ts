import type { Deps } from '../deps.js';
import { BATCH, claimDue, deleteSettled, markFailed, markSent, postpone, type Claimed } from '../store/notifications.js';
import { createTransports, type Delivery, type Outgoing, type Transport } from './channels.js';
import { openPayload } from './queue.js';
import { CHANNELS, checkTemplates, loadTemplates, standIns, type Channel, type Templates } from './templates.js';

/** For those who queue messages. */
export interface Notify {
  /** Has the sender look at once. Call it after the commit. */
  wake(): void;
}

export interface Sender extends Notify {
  /** Takes no more messages, lets those on their way arrive for a while, and gives up the rest: they stay queued. */
  close(): Promise<void>;
}

export interface Timing {
  /** Longest time between two looks when nobody wakes the sender. */
  pollMs: number;
  /** Longest time that one try may take; below leaseMs. */
  tryMs: number;
  /** How long a message belongs to the sender that claimed it. */
  leaseMs: number;
  /** Wait before the second try; four times as long before each further one. */
  backoffMs: number;
  /** How long `close` waits for what is on its way. */
  closeMs: number;
}

/** Ten tries, four times further apart each time, span a day. */
const MOST_TRIES = 10;
const TIMING: Timing = { pollMs: 1_500, tryMs: 15_000, leaseMs: 30_000, backoffMs: 1_000, closeMs: 5_000 };
/** Messages of one channel that may be on their way at once. */
const SLOTS = 2 * BATCH;
/** How long the row of a message that is done with is kept, without recipient and values. */
const KEEP_DAYS = 7;
const SWEEP_MS = 600_000;
/** How soon a result that MySQL did not take is offered again. */
const RESAVE_MS = 250;
const NOTHING = { claimed: [] as Claimed[], more: false };

type Needs = Pick<Deps, 'mysql' | 'log' | 'config' | 'keyring' | 'metrics' | 'clock'>;

/**
 * Sends what is queued, at least once each and from any number of nodes. Every channel has a lane of its own: a
 * provider that hangs holds up nobody else. Checks the templates first.
 */
export function startSender(needs: Needs, options: { templates?: Templates; timing?: Partial<Timing> } = {}): Sender {
  const templates = options.templates ?? loadTemplates();
  const timing = { ...TIMING, ...options.timing };
  checkTemplates(needs, templates);
  const transports = createTransports(needs);
  const lanes = CHANNELS.map((channel) => startLane(needs, channel, templates, transports[channel], timing));

  const sweep = async (): Promise<void> => {
    while ((await deleteSettled(needs.mysql, KEEP_DAYS)) === 1000);
  };
  const sweeper = setInterval(() => void sweep().catch((error: unknown) => needs.log.warn({ err: error }, 'old notifications could not be deleted')), SWEEP_MS);

  return {
    wake: () => lanes.forEach((lane) => lane.wake()),
    async close() {
      clearInterval(sweeper);
      await Promise.all(lanes.map((lane) => lane.close()));
      for (const channel of CHANNELS) transports[channel].close();
    },
  };
}

function startLane(needs: Needs, channel: Channel, templates: Templates, transport: Transport, timing: Timing): Sender {
  const { mysql, log, metrics, config } = needs;
  /** Each message on its way, by what ends its try. */
  const onTheWay = new Map<AbortController, Promise<void>>();
  let givenUp = false;
  let stopping = false;
  let woken = false;
  let rouse = (): void => undefined;

  const wake = (): void => {
    woken = true;
    rouse();
  };

  /** Until somebody wakes the lane, at most `ms`. */
  async function rest(ms: number): Promise<void> {
    if (!woken) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, ms);
        rouse = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    woken = false;
  }

  async function run(): Promise<void> {
    while (!stopping) {
      const { claimed, more } = onTheWay.size + BATCH <= SLOTS ? await claim() : NOTHING;
      for (const row of claimed) begin(row);
      if (!more) await rest(timing.pollMs * (0.8 + 0.4 * Math.random()));
    }
  }

  const claim = (): ReturnType<typeof claimDue> =>
    claimDue(mysql, channel, timing.leaseMs).catch((error: unknown) => {
      log.debug({ err: error, channel }, 'notifications could not be claimed');
      return NOTHING;
    });

  function begin(row: Claimed): void {
    const limit = new AbortController();
    const work = attempt(row, limit).finally(() => {
      onTheWay.delete(limit);
      // There is room for a batch again.
      if (onTheWay.size + BATCH === SLOTS) wake();
    });
    onTheWay.set(limit, work);
  }

  async function attempt(row: Claimed, limit: AbortController): Promise<void> {
    const prepared = prepare(row);
    if ('kind' in prepared) return settle(row, prepared);
    const timer = setTimeout(() => limit.abort(), timing.tryMs);
    const delivery = await transport.deliver(prepared, limit.signal);
    clearTimeout(timer);
    return settle(row, delivery);
  }

  /** The message of a row, or why there is none. */
  function prepare(row: Claimed): Outgoing | Delivery {
    const now = needs.clock.now();
    const data = openPayload(needs.keyring, row.id, row.payload);
    if (data === null) return { kind: 'failed', reason: 'sealed under an unknown SECRET_KEY' };
    if (data.expiresAt !== undefined && new Date(data.expiresAt).getTime() <= now) return { kind: 'failed', reason: 'expired' };
    try {
      const tenant = row.tenant ?? config.defaultCommsTenantId;
      const rendered = templates.render(standIns(row.tenant, config.defaultCommsTenantId), row.template, channel, data, now);
      // A node of another version, or one that is set up better, may have it.
      if (rendered === null) return { kind: 'retry', reason: 'no such template' };
      return { id: row.id, tenant, template: row.template, channel, to: row.recipient, ...rendered, data };
    } catch (error) {
      log.error({ err: error, template: row.template, channel }, 'template cannot be rendered');
      return { kind: 'failed', reason: 'template cannot be rendered' };
    }
  }

  async function settle(row: Claimed, delivery: Delivery): Promise<void> {
    const about = { notification: row.id, template: row.template, channel, attempts: row.attempts };
    if (delivery.kind === 'sent') {
      metrics.notifications.inc({ channel, outcome: 'sent' });
      log.debug(about, 'notification sent');
      return saved(() => markSent(mysql, row.id));
    }
    const { reason } = delivery;
    if (delivery.kind === 'failed' || row.attempts >= MOST_TRIES) {
      metrics.notifications.inc({ channel, outcome: 'failed' });
      // A channel that is not set up is known from the settings and meets every message.
      if (transport.unset === true) log.warn({ ...about, reason }, 'notification given up');
      else log.error({ ...about, reason }, 'notification given up');
      return saved(() => markFailed(mysql, row, reason));
    }
    metrics.notifications.inc({ channel, outcome: 'retried' });
    log.warn({ ...about, reason }, 'notification will be tried again');
    return saved(() => postpone(mysql, row, reason, timing.backoffMs * 4 ** (row.attempts - 1) * (0.75 + 0.5 * Math.random())));
  }

  // A result that is lost means a message sent twice: MySQL is asked until it takes it.
  async function saved(work: () => Promise<void>): Promise<void> {
    for (;;) {
      try {
        return await work();
      } catch (error) {
        if (givenUp) return;
        log.debug({ err: error, channel }, 'the result of a notification could not be saved');
        await new Promise((resolve) => setTimeout(resolve, RESAVE_MS));
      }
    }
  }

  const running = run();
  return {
    wake,
    async close() {
      stopping = true;
      wake();
      await running;
      const patience = setTimeout(() => {
        givenUp = true;
        for (const limit of onTheWay.keys()) limit.abort();
      }, timing.closeMs);
      await Promise.all(onTheWay.values());
      clearTimeout(patience);
    },
  };
}
