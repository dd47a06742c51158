import t from 'tap';
import { startClock } from '../../src/clock.js';
import { createLog } from '../../src/log.js';
import { createMysql } from '../../src/store/mysql.js';
import { figure } from '../support/figures.js';
import { startProxy } from '../support/proxy.js';
import { freshDatabase } from '../support/stores.js';

const url = await freshDatabase(t);

t.test('the time is that of the database, whatever the clock of the machine says and however slow the way', async (t) => {
  const proxy = await startProxy(t, url);
  const mysql = createMysql({ url: proxy.via(url), connections: 1, log: createLog('silent') });
  t.teardown(() => mysql.close());
  await mysql.rows('SELECT 1');
  proxy.delay(100);
  const clock = await startClock(mysql);
  t.teardown(() => clock.stop());
  proxy.delay(0);
  const { now: machine } = Date;
  t.teardown(() => (Date.now = machine));
  Date.now = () => machine() + 3_600_000;
  const [row] = await mysql.rows<{ now: Date }>('SELECT UTC_TIMESTAMP(3) AS now');
  const off = Math.abs(clock.now() - row!.now.getTime());
  figure(t, 'T26', { did: 'the clock of the machine 1 h ahead, 100 ms each way to MySQL', figure: `${off.toFixed(0)} ms off`, ok: off < 60 });
});

t.test('the clock goes on while the database is away, and does not keep the process', async (t) => {
  const mysql = createMysql({ url, connections: 1, log: createLog('silent') });
  const clock = await startClock(mysql);
  await mysql.close();
  const [before, started] = [clock.now(), performance.now()];
  await new Promise((resolve) => setTimeout(resolve, 500));
  const passed = clock.now() - before;
  t.ok(Math.abs(passed - (performance.now() - started)) < 100, `${passed} ms`);
  clock.stop();
});

t.test('without a database there is no time', async (t) => {
  const mysql = createMysql({ url: 'mysql://127.0.0.1:1/none', connections: 1, log: createLog('silent') });
  t.teardown(() => mysql.close());
  await t.rejects(startClock(mysql), { code: 'UNAVAILABLE' });
});
