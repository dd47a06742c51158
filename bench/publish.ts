import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { publish } from './report.js';
import type { Results } from './results.js';
import { FOLDER } from './stage.js';

/** `npm run bench -- publish`: puts what the last run found where it is committed. */
publish(JSON.parse(readFileSync(join(FOLDER, 'latest.json'), 'utf8')) as Results);
process.stdout.write('written to bench/README.md, bench/results and bench/charts\n');
