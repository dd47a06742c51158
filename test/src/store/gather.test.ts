import t from 'tap';
import { ApiError } from '../../../src/errors.js';
import { coalesce } from '../../../src/store/coalesce.js';
import { gather } from '../../../src/store/gather.js';

const pause = (ms: number): Promise<unknown> => new Promise((resolve) => setTimeout(resolve, ms));

/** Doubles numbers and keeps the batches it was given. */
function doubler(): { batches: number[][]; work: (items: number[]) => Promise<number[]> } {
  const batches: number[][] = [];
  const work = async (items: number[]): Promise<number[]> => {
    batches.push(items);
    await pause(1);
    return items.map((item) => item * 2);
  };
  return { batches, work };
}

t.test('what is asked within one turn is worked on together, and each caller gets its own answer', async (t) => {
  const { batches, work } = doubler();
  const ask = gather(work, { most: 10 });
  t.same(await Promise.all([ask(1), Promise.resolve().then(() => ask(2)), ask(3)]), [2, 4, 6]);
  t.same(batches, [[1, 3, 2]]);
  t.equal(await ask(4), 8);
  t.equal(batches.length, 2);
});

t.test('a batch is never larger than it may be, and a full one does not wait', async (t) => {
  const { batches, work } = doubler();
  const ask = gather(work, { most: 2, lingerMs: () => 10_000 });
  const started = performance.now();
  t.same(await Promise.all([1, 2, 3, 4].map(ask)), [2, 4, 6, 8]);
  t.ok(performance.now() - started < 5_000);
  t.same(batches, [[1, 2], [3, 4]]);
});

t.test('the size of each batch is told', async (t) => {
  const sizes: number[] = [];
  const ask = gather(doubler().work, { most: 3, onBatch: (items) => sizes.push(items) });
  await Promise.all([1, 2, 3, 4].map(ask));
  await ask(5);
  t.same(sizes, [3, 1, 1]);
});

t.test('a linger lets later ones in, once', async (t) => {
  const { batches, work } = doubler();
  const ask = gather(work, { most: 10, lingerMs: () => 300 });
  const first = ask(1);
  await pause(20);
  const second = ask(2);
  t.same(batches, []);
  t.same(await Promise.all([first, second]), [2, 4]);
  t.same(batches, [[1, 2]]);
  await pause(320);
  t.equal(batches.length, 1, 'the timer of a batch that is gone does nothing');
});

t.test('one that cannot be done fails its own caller only, and each is tried alone no more than once', async (t) => {
  const batches: number[][] = [];
  const ask = gather((items: number[]) => {
    batches.push(items);
    return items.includes(13) ? Promise.reject(new Error('bad luck')) : Promise.resolve(items);
  }, { most: 3 });
  const results = await Promise.allSettled([ask(1), ask(13), ask(2), ask(3)]);
  t.same(results.map(({ status }) => status), ['fulfilled', 'rejected', 'fulfilled', 'fulfilled']);
  t.same(batches, [[1, 13, 2], [1], [13], [2], [3]]);
  t.equal(await ask(4), 4);
});

t.test('while a store is away all of a batch fail at once, with those who waited for it', async (t) => {
  let asked = 0;
  const ask = gather(async () => {
    asked += 1;
    await pause(150);
    throw new ApiError('UNAVAILABLE');
  }, { most: 2, lanes: 1 });
  const started = performance.now();
  const first = [ask(1), ask(2), ask(3)];
  await pause(120);
  const late = ask(4).catch(() => performance.now() - started);
  const results = await Promise.allSettled(first);
  t.same(results.map((one) => one.status === 'rejected' && (one.reason as ApiError).code), ['UNAVAILABLE', 'UNAVAILABLE', 'UNAVAILABLE']);
  t.ok(Number(await late) > 290);
  t.equal(asked, 2, 'neither alone nor for the third, but once more for the one who has just come');
});

t.test('while the lanes are taken items wait and go together, in the order they came', async (t) => {
  const { batches, work } = doubler();
  const ask = gather(work, { most: 3, lanes: 1 });
  const first = ask(1);
  await new Promise((resolve) => setImmediate(resolve));
  t.same(await Promise.all([first, ...[2, 3, 4, 5].map(ask)]), [2, 4, 6, 8, 10]);
  t.same(batches, [[1], [2, 3, 4], [5]]);
});

t.test('a batch that has enough starts at once, and takes along what piled up while no lane was free', async (t) => {
  const { batches, work } = doubler();
  const ask = gather(work, { most: 5, enough: 2, lanes: 1 });
  t.same(await Promise.all([1, 2, 3, 4, 5, 6, 7, 8].map(ask)), [2, 4, 6, 8, 10, 12, 14, 16]);
  t.same(batches, [[1, 2], [3, 4, 5, 6, 7], [8]]);
});

t.test('reads of one key within a turn are one read, and a key that is not found is null', async (t) => {
  const loads: string[][] = [];
  const read = coalesce((keys: string[]) => {
    loads.push(keys);
    return Promise.resolve(new Map(keys.filter((key) => key !== 'nobody').map((key) => [key, key.toUpperCase()])));
  });
  t.same(await Promise.all([read('a'), read('b'), read('a'), read('nobody')]), ['A', 'B', 'A', null]);
  t.same(loads, [['a', 'b', 'nobody', '']], 'lengthened to a power of two, so that few statements are prepared');
  const letters = 'a b c d e f g h i j k l m n o p q'.split(' ');
  t.same(await Promise.all(letters.map(read)), letters.map((letter) => letter.toUpperCase()));
  t.same(loads.slice(1), [letters.slice(0, 16), ['q']]);
  t.equal(await read('a'), 'A');
  t.equal(loads.length, 4, 'nothing is kept for the next turn');
});
