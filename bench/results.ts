import type { Finding } from './findings.js';
import type { Facts } from './machine.js';
import type { Plan, ScenarioName } from './options.js';

/** What one run found; written as JSON, and what charts are drawn from. */
export interface Results {
  facts: Facts;
  plan: Plan;
  /** Share of all cores that others used, 0 to 1. */
  others: number;
  scenarios: [ScenarioName, Finding][];
}

/** With more of the machine than this in other hands, a target is neither met nor missed. */
export const MOST_OTHERS = 0.1;
