import { existsSync } from 'node:fs';
import t from 'tap';
import { testimony } from '../support/witness.js';
import { UNREACHED } from './unreached.js';

const folder = process.env['REPLIES_FOLDER'] ?? '';

t.test('what the tests of this run got from the service is what the document declares, all of it', { skip: existsSync(folder) ? false : 'no run of the whole suite noted its replies' }, (t) => {
  const { declared, reached, faults } = testimony(folder);
  const excused = (label: string): boolean => UNREACHED.some((one) => one.label.test(label));
  t.ok(reached.size > 100, `${reached.size} kinds of replies`);
  t.same(faults, [], 'no reply came that is not declared');
  t.same([...reached].filter((label) => !declared.includes(label)), [], 'no code came that is not declared');
  t.same(declared.filter((label) => !reached.has(label) && !excused(label)), [], 'no reply is declared that no test gets');
  t.end();
});

t.test('what is excused from being reached is declared, and is not reached', { skip: existsSync(folder) ? false : 'no run of the whole suite noted its replies' }, (t) => {
  const { declared, reached } = testimony(folder);
  for (const { label, why, rare } of UNREACHED) {
    t.ok(declared.some((one) => label.test(one)), `${label.source} is declared`);
    if (!rare) t.same([...reached].filter((one) => label.test(one)), [], `no longer: ${why}`);
  }
  t.end();
});
