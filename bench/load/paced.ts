import { keepTime } from './metronome.js';
import { kindOf, type Sender } from './traffic.js';
import type { Window } from './window.js';
import { openWire, type Wire } from './wire.js';

/** Until the metronome ticks, in ms. */
const START_MS = 50;

/**
 * Sends a fixed number of requests per second, evenly spaced, whatever the answers do. Each is timed from the
 * moment it was due, so that a stall counts for all whom it would have kept waiting. (autocannon's own rate
 * limit sends each second's requests in one burst.)
 */
export async function runPaced(base: string, perSecond: number, senders: Sender[], window: Window): Promise<void> {
  const wire = openWire(base);
  const sendNext = turns(wire, senders);
  const started = performance.now() + START_MS;
  let [sent, open] = [0, 0];
  let whenNoneIsOpen: (() => void) | null = null;
  await keepTime(perSecond, started, window.to, (due) => {
    for (; sent < due; sent += 1) {
      const dueAt = started + (sent * 1000) / perSecond;
      window.late(dueAt, performance.now() - dueAt);
      open += 1;
      sendNext((status, body) => {
        window.reply(dueAt, status === 0 ? 'none' : kindOf(status, body), performance.now() - dueAt);
        open -= 1;
        if (open === 0) whenNoneIsOpen?.();
      });
    }
  });
  if (open > 0) await new Promise<void>((resolve) => (whenNoneIsOpen = resolve));
  wire.close();
}

/** Sends one request at each call. */
function turns(wire: Wire, senders: Sender[]): (done: (status: number, body: string) => void) => void {
  const [first] = senders;
  if (first?.kind === 'made') return (done) => wire.send(first.next(), done);
  if (first?.kind === 'fixed') {
    const requests = senders.flatMap((sender) => (sender.kind === 'fixed' ? sender.requests : []));
    let at = 0;
    return (done) => wire.send(requests[at++ % requests.length]!, done);
  }
  const free = senders.filter((sender) => sender.kind === 'chain');
  return (done) => {
    // The chain that has rested longest; with none free, this counts as a request that nobody answered.
    const chain = free.shift();
    if (!chain) return done(0, '');
    wire.send(chain.next(), (status, body) => {
      if (status === 200) chain.took(body);
      free.push(chain);
      done(status, body);
    });
  };
}
