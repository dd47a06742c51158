import t from 'tap';
import { offBy } from '../support/clocks.js';
import { count, until } from '../support/due.js';
import { figure, scaled } from '../support/figures.js';
import { startNodes } from '../support/nodes.js';

/** So long before its moment a node is started, in ms: longer than a start takes on a busy machine. */
const BEFORE_MS = 5_000;

interface Night {
  what: string;
  zone: string;
  /** When the node is started, by its own clock. */
  start: number;
  /** The moment that must be done then, and the one that was missed before, which is caught up at once. */
  moment: number;
  missed: number;
}

const utc = (text: string): number => Date.parse(`${text}Z`);
const atMoment = (what: string, zone: string, moment: string, before: string): Night => ({ what, zone, start: utc(moment) - BEFORE_MS, moment: utc(moment), missed: utc(before) });
const late = (what: string, zone: string, start: string, moment: string): Night => ({ what, zone, start: utc(start), moment: utc(moment), missed: utc(moment) });

/** In the order of their clocks, since a night that is done is not done again. Of the nights 02:00 is left out, or comes twice. */
const NIGHTS: Night[] = [
  atMoment('02:00 left out', 'Europe/Berlin', '2031-03-30T01:00:00', '2031-03-29T01:00:00'),
  late('down at 02:00 after it', 'Europe/Berlin', '2031-03-31T07:00:00', '2031-03-31T00:00:00'),
  atMoment('02:00 comes twice', 'Europe/Berlin', '2031-10-26T00:00:00', '2031-10-25T00:00:00'),
  late('down at 02:00 after it', 'Europe/Berlin', '2031-10-27T07:00:00', '2031-10-27T01:00:00'),
  atMoment('02:00 left out', 'America/New_York', '2032-03-14T07:00:00', '2032-03-13T07:00:00'),
  atMoment('02:00 comes twice', 'America/New_York', '2032-11-07T06:00:00', '2032-11-06T06:00:00'),
].slice(0, scaled(2, 6));

t.test('a node whose clock passes a change of the clock does each night once, catches up what it missed, and purges nobody early', { timeout: 200_000 }, async (t) => {
  const { start, needs } = await startNodes(t, 0, { ENABLE_RETENTION_CRON: '1' });
  const { mysql } = needs;
  const insert = (email: string, ago: string): Promise<unknown> => mysql.run(`INSERT INTO users (id, email, deleted_at) VALUES (UUID(), ?, UTC_TIMESTAMP(3) - INTERVAL ${ago})`, [email]);
  /** Not due by a minute; by the clocks of the nodes it has been for years. */
  await insert('early@example.com', `${needs.config.retentionDays * 24 * 60 - 10} MINUTE`);
  const gone = (email: string) => async (): Promise<boolean> => (await count(mysql, 'users', `email = '${email}'`)) === 0;
  const done = async (): Promise<number> => (await mysql.rows<{ at: Date | null }>('SELECT done_for AS at FROM schedules'))[0]?.at?.getTime() ?? 0;

  let [nights, due] = [0, 0];
  for (const [i, { what, zone, start: at, moment, missed }] of NIGHTS.entries()) {
    await insert(`missed-${i}@example.com`, `${needs.config.retentionDays} DAY`);
    due += 1;
    const node = await start({ ...offBy(at - Date.now()), TZ: zone, RETENTION_TZ: zone });
    t.ok(await until(gone(`missed-${i}@example.com`), 8_000), `${zone}, ${what}: the night before is caught up at the start`);
    t.ok(await until(async () => (await done()) >= missed, 3_000));
    // On a machine that is busy the moment may have come before the node was up: then it was caught up, too.
    if ((await done()) < moment) {
      due += 1;
      await insert(`night-${i}@example.com`, `${needs.config.retentionDays} DAY`);
      t.ok(await until(gone(`night-${i}@example.com`), BEFORE_MS + 5_000), `${zone}, ${what}: the night is done`);
    }
    const isDone = await until(async () => (await done()) === moment, 3_000);
    t.ok(isDone, `${new Date(await done()).toISOString()} is done`);
    if (isDone) nights += 1;
    t.equal(await node.stop(), 0);
  }
  const early = 1 - (await count(mysql, 'users'));
  const purges = await count(mysql, 'audit_log', "action = 'account.purged'");
  t.equal(purges, due, 'each due account once');
  figure(t, 'T38', { did: `${NIGHTS.length} nights of running nodes whose Date passes a change of the clock, or comes up after it (${[...new Set(NIGHTS.map(({ zone }) => zone))].join(', ')})`, figure: `${nights} of ${NIGHTS.length} done, ${purges} of ${due} due accounts purged once, ${early} early`, ok: nights === NIGHTS.length && early === 0 && purges === due });
});
