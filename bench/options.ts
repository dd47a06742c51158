import { parseArgs } from 'node:util';

export const SCENARIOS = ['login', 'profile', 'refresh', 'mixed', 'overload', 'flood', 'scale', 'memory', 'tune'] as const;
export type ScenarioName = (typeof SCENARIOS)[number];

/** How long and how often each thing is measured. */
export interface Plan {
  quick: boolean;
  /** Each round measures everything of a scenario once, bare and full in turn. */
  rounds: number;
  /** Whether a round that does not count comes first. */
  heat: boolean;
  /** Load before the first reply counts, in ms. */
  warmMs: number;
  measureMs: number;
  /** The accounts of the large database, and the sessions that are in use in both. */
  large: number;
  activeSessions: number;
  only: readonly ScenarioName[];
  /** Whether the service writes a CPU profile. */
  profile: boolean;
}

const FULL = { quick: false, rounds: 5, heat: true, warmMs: 1_500, measureMs: 6_000, large: 1_000_000, activeSessions: 20_000 };
const QUICK = { quick: true, rounds: 2, heat: false, warmMs: 300, measureMs: 1_200, large: 100_000, activeSessions: 2_000 };

export const USAGE = `npm run bench -- [options]

  --quick         two short rounds, and 100,000 accounts for a million; under 4 min (default: five rounds, about 30 min)
  --only a,b      only these scenarios: ${SCENARIOS.join(', ')}
  --rounds n      so many rounds
  --profile       the service writes CPU profiles (node --cpu-prof) to .local/bench/profile
  --help          this text

Exit code 0: measured, whether targets were met or not. 1: replies were errors, or something could not be measured.
`;

/**
 * Reads the command line; null when only the usage was asked for.
 * @throws Error with one sentence that says what is wrong
 */
export function readOptions(args: string[]): Plan | null {
  const flag = { type: 'boolean' } as const;
  const { values } = parseArgs({ args, options: { quick: flag, only: { type: 'string' }, rounds: { type: 'string' }, profile: flag, help: { ...flag, short: 'h' } } });
  if (values.help) return null;
  const asked = values.only?.split(',').map((name) => name.trim()) ?? [...SCENARIOS];
  const unknown = asked.find((name) => !(SCENARIOS as readonly string[]).includes(name));
  if (unknown !== undefined) throw new Error(`there is no scenario "${unknown}"; there are ${SCENARIOS.join(', ')}`);
  const pace = values.quick ? QUICK : FULL;
  const rounds = Number(values.rounds ?? pace.rounds);
  if (!Number.isInteger(rounds) || rounds < 1) throw new Error('--rounds takes a whole number, 1 or more');
  return { ...pace, rounds, only: SCENARIOS.filter((name) => asked.includes(name)), profile: values.profile ?? false };
}
