import { parseArgs } from 'node:util';
import { ROWS } from '../test/faults/rows.js';
import { figureOf, soak, type Plan } from '../test/soak/soak.js';

const USAGE = `npm run soak -- [options]

Three nodes, a MySQL and a Redis of their own under mixed load, and one fault after the other. Prints each fault and how
soon every node served again, then what came of it all as row T67 of the table of faults; the exit code is 1 when a rule
was broken. The same seed chooses the same faults in the same order.

  --minutes n   how long (20)
  --every s     seconds from one fault to the next (20)
  --seed n      what chance begins with (of the clock)
`;

async function run(minutes: number, everyMs: number, seed: number): Promise<number> {
  const undo: (() => unknown)[] = [];
  const t = { teardown: (work: () => unknown) => void undo.push(work) };
  const say = (line: string): void => void process.stdout.write(`${line}\n`);
  const faults = Math.max(1, Math.round((minutes * 60_000) / everyMs));
  say(`seed ${seed}: ${faults} faults in ${minutes} minutes`);
  try {
    const clock = (): string => new Date().toISOString().slice(11, 19);
    const onFault: Plan['onFault'] = (name, backMs, n, complaints) => {
      say(`${clock()}  ${n}/${faults}  ${name}: back after ${backMs.toFixed(0)} ms`);
      for (const complaint of complaints) say(`  ✖ ${complaint}`);
    };
    const outcome = await soak(t, { seed, faults, everyMs, lastsMs: Math.min(3000, everyMs / 3), restMs: 60, onFault });
    say('');
    for (const [name, { times, slowestMs }] of [...outcome.faults].sort()) say(`${String(times).padStart(4)} × ${name}, back within ${slowestMs.toFixed(0)} ms`);
    say('');
    for (const [kind, n] of [...outcome.counts].sort()) say(`${String(n).padStart(7)} ${kind}`);
    say('');
    for (const [name, slope] of outcome.slopes) if (slope) say(`${name}: ${slope.fromMib.toFixed(1)} to ${slope.toMib.toFixed(1)} MiB in its last ${(slope.overMs / 60_000).toFixed(1)} min, ${slope.mibPerHour.toFixed(1)} MiB/h`);
    for (const complaint of outcome.complaints) say(`✖ ${complaint}`);
    const isFine = outcome.complaints.length === 0;
    say(`\nT67  ${isFine ? 'pass' : 'FAIL'}  ${ROWS.T67.threat}\n       ${(outcome.tookMs / 60_000).toFixed(1)} minutes, ${faults} faults of ${outcome.faults.size} kinds, seed ${seed}: ${figureOf(outcome)}\n         bound: ${ROWS.T67.bound}`);
    return isFine ? 0 : 1;
  } finally {
    for (const work of undo.reverse()) await work();
  }
}

const text = { type: 'string' } as const;
const { values } = parseArgs({ options: { minutes: text, every: text, seed: text, help: { type: 'boolean' } } });
if (values.help) process.stdout.write(USAGE);
else process.exitCode = await run(Number(values.minutes ?? 20), Number(values.every ?? 20) * 1000, Number(values.seed ?? Date.now() % 1e6));
