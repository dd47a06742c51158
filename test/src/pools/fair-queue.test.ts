import t from 'tap';
import { FairQueue } from '../../../src/pools/fair-queue.js';

function filled(text: string): FairQueue<string> {
  const queue = new FairQueue<string>();
  for (const item of text.split(' ')) queue.push(item[0]!, item);
  return queue;
}

function drain(queue: FairQueue<string>): string {
  const out: string[] = [];
  for (let item = queue.shift(); item !== undefined; item = queue.shift()) out.push(item);
  return out.join(' ');
}

t.test('sources are served in turn, each in its own order', (t) => {
  t.equal(drain(filled('a1 a2 a3 a4 b1 c1 c2')), 'a1 b1 c1 a2 c2 a3 a4');
  t.equal(drain(new FairQueue<string>()), '');
  t.end();
});

t.test('a source that comes back waits behind the others', (t) => {
  const queue = filled('a1 b1 b2');
  t.equal(queue.shift(), 'a1');
  queue.push('a', 'a2');
  t.equal(drain(queue), 'b1 a2 b2');
  t.end();
});

t.test('the busiest source gives way with its newest item, to a less busy one alone', (t) => {
  const queue = filled('a1 b1 b2 b3 c1 c2');
  t.equal(queue.evictHeaviest(3), undefined);
  t.equal(queue.evictHeaviest(2), 'b3');
  t.equal(queue.size, 5);
  t.equal(queue.waitingOf('b'), 2);
  t.equal(queue.waitingOf('x'), 0);
  t.equal(drain(queue), 'a1 b1 c1 b2 c2');
  t.end();
});

t.test('a sweep takes out what expired and keeps the order of the rest', (t) => {
  const queue = filled('a1 a2 b1 c1');
  t.same(queue.sweep((item) => item.endsWith('1')), ['a1', 'b1', 'c1']);
  t.equal(queue.size, 1);
  t.equal(drain(queue), 'a2');
  t.end();
});
