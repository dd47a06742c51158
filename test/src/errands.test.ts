import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import t from 'tap';
import { createErrands } from '../../src/errands.js';
import { ApiError } from '../../src/errors.js';

function arrange() {
  const lines: string[] = [];
  return { lines, errands: createErrands(pino({ level: 'error' }, { write: (line: string) => void lines.push(line) })) };
}

t.test('errands run a while after they were taken on, eight at a time at most', async (t) => {
  const { errands } = arrange();
  let running = 0;
  let most = 0;
  let done = 0;
  const work = async (): Promise<void> => {
    most = Math.max(most, (running += 1));
    await sleep(10);
    running -= 1;
    done += 1;
  };
  for (let i = 0; i < 100; i += 1) errands.add(work);
  t.equal(running, 0, 'none begins with the reply');
  while (done < 100) await sleep(10);
  t.ok(most <= 8);
});

t.test('closing starts what waits at once and settles when all is done', async (t) => {
  const { errands } = arrange();
  let [begun, done] = [0, 0];
  for (let i = 0; i < 30; i += 1) {
    errands.add(async () => {
      begun += 1;
      await sleep(5);
      done += 1;
    });
  }
  const closed = errands.close();
  t.equal(begun, 8, 'as many as may run at once');
  await closed;
  t.equal(done, 30);
  await arrange().errands.close();
});

t.test('an errand is tried again while a store is away, and once more when the service closes', async (t) => {
  const { errands, lines } = arrange();
  let tries = 0;
  errands.add(() => ((tries += 1) < 3 ? Promise.reject(new ApiError('UNAVAILABLE')) : Promise.resolve()));
  while (tries < 2) await sleep(10);
  await errands.close();
  t.equal(tries, 3);
  t.same(lines, []);
});

t.test('an errand that fails otherwise is logged and holds up no other', async (t) => {
  const { errands, lines } = arrange();
  let done = false;
  errands.add(() => Promise.reject(new Error('broken')));
  errands.add(() => Promise.resolve(void (done = true)));
  await errands.close();
  t.ok(done);
  t.equal(lines.length, 1);
  t.match(lines[0], /broken/);
});

t.test('no more than 5,000 errands wait', async (t) => {
  const { errands } = arrange();
  for (let i = 0; i < 5000; i += 1) errands.add(() => Promise.resolve());
  t.throws(() => errands.add(() => Promise.resolve()), { code: 'UNAVAILABLE' });
  await errands.close();
});
