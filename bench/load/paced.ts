import { keepTime } from './metronome.js';
import { kindOf, type Sender } from './traffic.js';
import type { Window } from './window.js';
import { openWire, type Reply, type Request, type Wire } from './wire.js';

/** Until the metronome ticks, in ms. */
const START_MS = 50;

/**
 * Sends a fixed number of requests per second, evenly spaced, whatever the answers do. Each is timed from the
 * moment it was due, so that a stall counts for all whom it would have kept waiting. (autocannon's own rate
 * limit sends each second's requests in one burst.)
 */
export async function runPaced(base: string, perSecond: number, senders: Sender[], window: Window): Promise<void> {
  const wire = openWire(base);
  const open = new Set<Promise<void>>();
  const next = turns(senders);
  const started = performance.now() + START_MS;
  let sent = 0;
  await keepTime(perSecond, started, window.to, (due) => {
    for (; sent < due; sent += 1) {
      const dueAt = started + (sent * 1000) / perSecond;
      window.late(dueAt, performance.now() - dueAt);
      const one: Promise<void> = next(wire).then((reply) => {
        window.reply(dueAt, reply === null ? 'none' : kindOf(reply.status, reply.body), performance.now() - dueAt);
        open.delete(one);
      });
      open.add(one);
    }
  });
  await Promise.all(open);
  wire.close();
}

/** Sends one request at each call. */
function turns(senders: Sender[]): (wire: Wire) => Promise<Reply | null> {
  const [first] = senders;
  if (first?.kind === 'made') return (wire) => wire.send(first.next());
  if (first?.kind === 'fixed') {
    const requests = senders.flatMap((sender) => (sender.kind === 'fixed' ? sender.requests : []));
    let at = 0;
    return (wire) => wire.send(requests[at++ % requests.length]!);
  }
  const free = senders.filter((sender) => sender.kind === 'chain');
  // The chain that has rested longest; with none free, its request is one that nobody answered.
  return async (wire) => {
    const chain = free.shift();
    if (!chain) return null;
    const request: Request = chain.next();
    const reply = await wire.send(request);
    if (reply?.status === 200) chain.took(reply.body);
    free.push(chain);
    return reply;
  };
}
