// Mostly waits.

import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { createLog } from '../../src/log.js';
import { newestMoment, startSchedule, type Task } from '../../src/schedule.js';
import { createMysql, type Mysql } from '../../src/store/mysql.js';
import { doneFor } from '../../src/store/schedules.js';
import { figure } from '../support/figures.js';
import { until } from '../support/patience.js';
import { freshDatabase, type Teardown } from '../support/stores.js';

const log = createLog('fatal');
const nightly = (timeZone: string): Pick<Task, 'at' | 'timeZone'> => ({ at: '0 2 * * *', timeZone });

async function open(t: Teardown): Promise<Mysql> {
  const mysql = createMysql({ url: await freshDatabase(t), connections: 4, log });
  t.teardown(() => mysql.close());
  return mysql;
}

/** The moments of a timetable that a node sees which looks every half hour. */
function momentsOf(timeZone: string, from: string, days: number): string[] {
  const start = Date.parse(from);
  const seen = new Set<string>();
  for (let at = start; at < start + days * 86_400_000; at += 1_800_000) seen.add(newestMoment(nightly(timeZone), at).toISOString());
  return [...seen];
}

t.test('each night has one moment at 02:00 of its time zone', async (t) => {
  t.equal(newestMoment(nightly('UTC'), Date.parse('2026-05-01T02:00:00Z')).toISOString(), '2026-05-01T02:00:00.000Z');
  t.equal(newestMoment(nightly('UTC'), Date.parse('2026-05-01T01:59:59.999Z')).toISOString(), '2026-04-30T02:00:00.000Z');
  t.equal(newestMoment(nightly('Asia/Kolkata'), Date.parse('2026-05-01T12:00:00Z')).toISOString(), '2026-04-30T20:30:00.000Z');
  t.equal(momentsOf('UTC', '2026-01-01T12:00:00Z', 10).length, 11);
});

t.test('a change of the clock skips no night', async (t) => {
  const spring = momentsOf('America/New_York', '2026-03-06T12:00:00Z', 4);
  t.same(spring, ['2026-03-06T07:00:00.000Z', '2026-03-07T07:00:00.000Z', '2026-03-08T07:00:00.000Z', '2026-03-09T06:00:00.000Z', '2026-03-10T06:00:00.000Z'], 'where there is no 02:00 it is 03:00');
  // The cron package may see one moment more, at the hour that comes twice: a run too many changes nothing.
  const autumn = momentsOf('America/New_York', '2026-10-30T12:00:00Z', 4);
  for (const moment of ['2026-10-30T06:00:00.000Z', '2026-10-31T06:00:00.000Z', '2026-11-01T07:00:00.000Z', '2026-11-02T07:00:00.000Z', '2026-11-03T07:00:00.000Z']) t.ok(autumn.includes(moment), moment);
  t.ok(autumn.length <= 6);
  figure(t, 'T38', { did: 'the moments of 02:00 over both changes of the clock in New York', figure: `${spring.length} of 5 and ${autumn.length} of 5 nights (one more is allowed in autumn)`, ok: spring.length === 5 && autumn.length >= 5 && autumn.length <= 6 });
  const berlin = momentsOf('Europe/Berlin', '2026-03-28T00:30:00Z', 3);
  for (const moment of ['2026-03-28T01:00:00.000Z', '2026-03-29T01:00:00.000Z', '2026-03-30T00:00:00.000Z']) t.ok(berlin.includes(moment), moment);
});

t.test('of two nodes one does the task at each moment', async (t) => {
  const mysql = await open(t);
  /** The newest moment that was done when each run began. */
  const before: (number | undefined)[] = [];
  let busy = 0;
  const task: Task = {
    ...{ name: 'test', at: '* * * * * *', timeZone: 'UTC' },
    async work() {
      busy += 1;
      if (busy > 1) t.fail('two at once');
      before.push((await doneFor(mysql, 'test'))?.getTime());
      await sleep(100);
      busy -= 1;
    },
    leaseMs: 10_000,
  };
  const nodes = [startSchedule({ mysql, log }, task), startSchedule({ mysql, log }, task)];
  const started = performance.now();
  await until(async () => before.length >= 3);
  await Promise.all(nodes.map((node) => node.close()));
  t.equal(new Set(before).size, before.length, 'none twice');
  const seconds = (performance.now() - started) / 1000;
  t.ok(before.length <= seconds + 3, `${before.length} times in ${seconds.toFixed(1)} s`);
});

t.test('a task that is stopped half way is not counted as done and starts again', async (t) => {
  const mysql = await open(t);
  let runs = 0;
  const task: Task = {
    ...{ name: 'test', ...nightly('UTC') },
    work: async (_, signal) => {
      runs += 1;
      while (runs === 1 && !signal.aborted) await sleep(5);
    },
  };
  const first = startSchedule({ mysql, log }, task);
  while (runs === 0) await sleep(5);
  await first.close();
  t.equal(await doneFor(mysql, 'test'), null);
  const second = startSchedule({ mysql, log }, task);
  while ((await doneFor(mysql, 'test')) === null) await sleep(5);
  await second.close();
  t.equal(runs, 2);
  t.ok((await doneFor(mysql, 'test'))!.getTime() <= Date.now());
  const third = startSchedule({ mysql, log }, task);
  await sleep(100);
  await third.close();
  t.equal(runs, 2, 'and once done, it is not done again');
});
