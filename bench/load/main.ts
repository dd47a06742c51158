import { setPriority } from 'node:os';
import { answer } from '../child.js';
import { PROGRAMS } from './addresses.js';
import { runClosed } from './closed.js';
import type { LoadJob, LoadResult } from './job.js';
import { runPaced } from './paced.js';
import { createTraffic } from './traffic.js';
import { openWindow } from './window.js';

/** Chains of a paced measurement: more than can be due while one waits for its reply. */
const PACED_SENDERS = 64;
/** The niceness of a load that measures rather than loads; root alone may set it. */
const PRECISE = -10;

/** One program that sends load; `program` tells it from the others. */
answer(({ program }: { program: number }) => {
  const prepare = createTraffic(program, PROGRAMS);
  return Promise.resolve(async (job: LoadJob): Promise<LoadResult> => {
    const { base } = job.target;
    const senders = await prepare(job, 'connections' in job.pace ? job.pace.connections : PACED_SENDERS, (job.warmMs + job.measureMs) / 1000);
    if (job.precise) prefer(PRECISE);
    try {
      // Connections open and code warms up before the window does.
      const window = openWindow(job);
      if ('connections' in job.pace) await runClosed(base, senders, window);
      else await runPaced(base, job.pace.perSecond, senders, window);
      return await window.result();
    } finally {
      if (job.precise) prefer(0);
    }
  });
});

/** Of this thread and those that it starts from now on. */
function prefer(niceness: number): void {
  try {
    setPriority(niceness);
  } catch {
    // Not root: it competes as equals do, and what that adds to a latency shows in how late requests are sent.
  }
}
