import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import { startClock } from '../../src/clock.js';
import { loadConfig } from '../../src/config/load.js';
import type { Deps } from '../../src/deps.js';
import { createKeyring } from '../../src/keyring.js';
import { enqueue, type Message } from '../../src/notify/queue.js';
import type { TemplateName } from '../../src/notify/templates.js';
import { createMetrics } from '../../src/ops/metrics.js';
import { createMysql } from '../../src/store/mysql.js';
import { freshDatabase, type Teardown } from './stores.js';

export const SECRET = Buffer.alloc(32, 7);

export interface LogLine {
  level: number;
  msg: string;
  [field: string]: unknown;
}

/** Everything that sending touches, on a database of its own (or the given one); `lines` is what was logged. */
export async function notifyNeeds(t: Teardown, env: Record<string, string> = {}, database?: string) {
  const url = database ?? (await freshDatabase(t));
  const lines: LogLine[] = [];
  const log = pino({ level: 'debug', base: null }, { write: (line: string) => void lines.push(JSON.parse(line) as LogLine) });
  const mysql = createMysql({ url, connections: 8, log });
  const clock = await startClock(mysql);
  const metrics = createMetrics();
  const config = loadConfig({ MYSQL_URL: url, REDIS_URL: 'redis://127.0.0.1:1', SECRET_KEY: SECRET.toString('base64'), ...env });
  const needs = { mysql, log, clock, metrics, config, keyring: createKeyring(config.secretKey, config.secretKeyPrevious) } satisfies Partial<Deps>;
  t.teardown(async () => {
    clock.stop();
    metrics.close();
    await mysql.close();
  });
  return { needs, lines, url };
}

export type NotifyNeeds = Awaited<ReturnType<typeof notifyNeeds>>['needs'];

export const queue = <T extends TemplateName>(needs: NotifyNeeds, message: Message<T>): Promise<void> => needs.mysql.transaction((tx) => enqueue(tx, needs, message));

export const CODE = '48151623';

/** A deletion code for ada, by mail. */
export const codeMail = (over: Partial<Message<'account_deletion_requested'>> = {}): Message<'account_deletion_requested'> => ({
  userId: '0199aaaa-0000-7000-8000-000000000001',
  tenant: null,
  template: 'account_deletion_requested',
  channel: 'EMAIL',
  to: 'ada@example.com',
  data: { otp: CODE, expiresAt: new Date(Date.now() + 900_000).toISOString(), gracePeriodDays: 30, name: 'Ada' },
  ...over,
});

export interface Row {
  id: string;
  tenant: string | null;
  recipient: string | null;
  payload: Buffer | null;
  attempts: number;
  next_attempt_at: Date | null;
  claimed_until: Date | null;
  sent_at: Date | null;
  failed_at: Date | null;
  last_error: string | null;
}

export const rows = (needs: NotifyNeeds): Promise<Row[]> => needs.mysql.rows<Row>('SELECT * FROM notification_outbox ORDER BY id');

/** The rows, once every one of them is sent or given up. */
export async function settled(needs: NotifyNeeds): Promise<Row[]> {
  for (;;) {
    const now = await rows(needs);
    if (now.length > 0 && now.every((row) => row.sent_at !== null || row.failed_at !== null)) return now;
    await sleep(10);
  }
}

/** What a counter shows for a channel. */
export async function counted(needs: NotifyNeeds, channel: string, outcome: string): Promise<number> {
  const { values } = await needs.metrics.notifications.get();
  return values.find(({ labels }) => labels.channel === channel && labels.outcome === outcome)?.value ?? 0;
}
