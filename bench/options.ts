import { parseArgs } from 'node:util';

export const SCENARIOS = ['login', 'refresh', 'profile', 'mixed', 'overload'] as const;
export type ScenarioName = (typeof SCENARIOS)[number];

/** How long and how often each thing is measured. */
export interface Plan {
  /** Each round measures everything of a scenario once, bare and full in turn. */
  rounds: number;
  /** Load before the first reply counts, in ms. */
  warmMs: number;
  measureMs: number;
  only: readonly ScenarioName[];
  /** Whether the service writes a CPU profile. */
  profile: boolean;
}

export const USAGE = `npm run bench -- [options]

  --quick         two short rounds, under 90 s in all (default: five rounds, about 9 min)
  --only a,b      only these scenarios: ${SCENARIOS.join(', ')}
  --profile       the service writes CPU profiles (node --cpu-prof) to .local/bench/profile
  --help          this text

Exit code 0: measured, whether targets were met or not. 1: replies were errors, or nothing could be measured.
`;

/**
 * Reads the command line; null when only the usage was asked for.
 * @throws Error with one sentence that says what is wrong
 */
export function readOptions(args: string[]): Plan | null {
  const { values } = parseArgs({
    args,
    options: { quick: { type: 'boolean' }, only: { type: 'string' }, profile: { type: 'boolean' }, help: { type: 'boolean', short: 'h' } },
  });
  if (values.help) return null;
  const asked = values.only?.split(',').map((name) => name.trim()) ?? [...SCENARIOS];
  const unknown = asked.find((name) => !(SCENARIOS as readonly string[]).includes(name));
  if (unknown !== undefined) throw new Error(`there is no scenario "${unknown}"; there are ${SCENARIOS.join(', ')}`);
  const pace = values.quick ? { rounds: 2, warmMs: 400, measureMs: 2_500 } : { rounds: 5, warmMs: 3_000, measureMs: 8_000 };
  return { ...pace, only: SCENARIOS.filter((name) => asked.includes(name)), profile: values.profile ?? false };
}
