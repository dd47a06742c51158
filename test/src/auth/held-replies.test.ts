import t from 'tap';
import { createHeldReplies } from '../../../src/auth/held-replies.js';

const never = new AbortController().signal;

t.test('a reply is held until its moment and never less', async (t) => {
  const replies = createHeldReplies(() => undefined);
  await Promise.all(
    Array.from({ length: 50 }, async (_, i) => {
      const until = performance.now() + i / 3;
      // A busy turn of the event loop makes timers count from its start.
      if (i % 10 === 0) for (const end = performance.now() + 3; performance.now() < end; );
      await replies.hold(until, never);
      t.ok(performance.now() >= until);
    }),
  );
});

t.test('it goes at once when its client leaves, when too many are held and when the server stops', async (t) => {
  let held = 0;
  const replies = createHeldReplies((now) => (held = now));
  const hour = performance.now() + 3600_000;
  const leaving = new AbortController();
  const left = replies.hold(hour, leaving.signal);
  t.equal(held, 1);
  leaving.abort();
  await left;
  t.equal(held, 0);
  await replies.hold(hour, leaving.signal);

  const waiting = Array.from({ length: 10_000 }, () => replies.hold(hour, never));
  t.equal(held, 10_000);
  await replies.hold(hour, never);
  t.equal(held, 10_000, 'the one above the most went at once');
  replies.releaseAll();
  await Promise.all(waiting);
  t.equal(held, 0);
  await replies.hold(hour, never);
});
