import { answer } from '../child.js';
import { runClosed } from './closed.js';
import type { Accounts, LoadJob, LoadResult } from './job.js';
import { runPaced } from './paced.js';
import { createTraffic } from './traffic.js';
import { openWindow } from './window.js';

/** Senders of a paced measurement: more than can be due while one waits for its turn. */
const PACED_SENDERS = 32;

answer((accounts: Accounts) => {
  const prepare = createTraffic(accounts);
  return Promise.resolve(async (job: LoadJob): Promise<LoadResult> => {
    const senders = await prepare(job.traffic, job.base, 'connections' in job.pace ? job.pace.connections : PACED_SENDERS);
    // Connections open and code warms up before the window does.
    const window = openWindow(job);
    if ('connections' in job.pace) await runClosed(job.base, senders, window);
    else await runPaced(job.base, job.pace.perSecond, senders, window);
    return window.result();
  });
});
