import t from 'tap';
import { v4 as uuid } from 'uuid';
import type { Answer } from '../support/client.js';
import { taskNeeds } from '../support/due.js';
import { figure, scaled } from '../support/figures.js';
import { createAsking } from '../soak/asking.js';
import { chanceOf, rounds } from '../soak/chance.js';
import { FAULTS } from '../soak/faults.js';
import { watchMemory } from '../soak/memory.js';
import { figureOf, soak } from '../soak/soak.js';
import { judge } from '../soak/verdict.js';
import type { Place } from '../soak/world.js';

/** Every kind of fault twice; none in npm test, which has no minutes to spare. */
const FULL = scaled(0, 2 * FAULTS.length);
const skip = FULL > 0 ? false : 'takes minutes: npm run test:faults -- soak, or npm run soak for as long as one likes';

t.test('under mixed load with one fault after the other no rule is broken', { skip, timeout: 450_000 }, async (t) => {
  const outcome = await soak(t, { seed: 67, faults: FULL, everyMs: 6000, lastsMs: 2000, restMs: 60 });
  t.same(outcome.complaints, []);
  t.equal([...outcome.faults.values()].reduce((sum, { times }) => sum + times, 0), FULL);
  t.ok(outcome.races > 0 && outcome.accounts.due > 0 && (outcome.counts.get('login 200') ?? 0) > 0, 'all kinds of users were there');
  figure(t, 'T67', { did: `${(outcome.tookMs / 60_000).toFixed(1)} minutes at three nodes, ${FULL} faults of ${outcome.faults.size} kinds, seed 67`, figure: figureOf(outcome), ok: outcome.complaints.length === 0 });
});

t.test('a soak complains of replies that must not be, and of no others', async (t) => {
  const place = { name: 'a node', node: { client: () => undefined }, isDoomed: false, lives: 1 } as unknown as Place;
  const complaints: string[] = [];
  const { ask, counts } = createAsking({ places: [place], complaints }, chanceOf(1));
  const answer = (status: number) => async (): Promise<Answer> => ({ status, text: '', body: {}, headers: new Headers(), setCookies: [] });
  const lost = async (): Promise<Answer> => Promise.reject(new Error('reset'));
  await ask('login', answer(200));
  await ask('login', answer(503));
  await ask('guess', answer(401));
  t.same(complaints, []);
  await ask('login', answer(401));
  await ask('profile', answer(500));
  await ask('refresh', lost);
  t.equal(complaints.length, 3, 'the right password refused, an error, no reply');
  place.isDoomed = true;
  t.equal(await ask('refresh', lost, place), null);
  t.equal(complaints.length, 3, 'a node that was ended may not answer');
  t.equal(counts.get('refresh cut'), 1);
});

t.test('a soak finds changes that are half done, lost or done twice', async (t) => {
  const { mysql } = await taskNeeds(t);
  const life = { id: uuid(), email: 'a@example.com', password: '', deleted: 0, restored: 0 };
  await mysql.run('INSERT INTO users (id, email) VALUES (?, ?)', [life.id, life.email]);
  const complaintsOf = async (load: { lives: (typeof life)[]; due: string[] }, heard: Record<string, unknown>[] = []): Promise<string[]> => {
    const complaints: string[] = [];
    const events = new Map(heard.map((event) => [event['id'] as string, event as never]));
    await judge({ complaints, needs: { mysql }, consumer: { events, clashes: [] } }, load, 100);
    return complaints.map((one) => one.slice(0, 3));
  };
  t.same(await complaintsOf({ lives: [life], due: [] }), []);
  t.same(await complaintsOf({ lives: [{ ...life, deleted: 1 }], due: [] }), ['T34'], 'answered and not done');
  t.same(await complaintsOf({ lives: [], due: [uuid()] }), ['T37'], 'due and not purged');
  t.same(await complaintsOf({ lives: [life], due: [] }, [{ id: 'e', type: 'identity.user.deleted', userId: life.id }]), ['T34'], 'an event of nothing');
  await mysql.run('UPDATE users SET deleted_at = UTC_TIMESTAMP(3) WHERE id = ?', [life.id]);
  t.same(await complaintsOf({ lives: [life], due: [] }), ['T34'], 'deleted without its event');
});

t.test('the same seed has the same faults come in the same order, each once before any comes again', async (t) => {
  const first = (seed: number): string[] => {
    const order = rounds(FAULTS, chanceOf(seed));
    return FAULTS.map(() => order.next().value.name);
  };
  t.same(first(7), first(7));
  t.notSame(first(7), first(8));
  t.equal(new Set(first(7)).size, FAULTS.length);
});

t.test('the slope of memory leaves out the warm-up and what is waiting to be collected', async (t) => {
  let [now, mib] = [0, 0];
  const memory = watchMemory(() => now, () => mib);
  const measure = (mibAt: (second: number) => number): number => {
    for (let second = 0; second <= 600; second += 2) {
      [now, mib] = [second * 1000, mibAt(second)];
      memory.sample('node', mibAt(1));
    }
    return memory.slopeOf('node', 120_000)!.mibPerHour;
  };
  t.equal(Math.round(measure((second) => 100 + second / 60)), 60);
  t.ok(Math.abs(measure((second) => 200 + (second % 20) + (second < 100 ? second : 100))) < 5, 'a sawtooth is flat');
});
