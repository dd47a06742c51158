// Hears every deletion at least once: follows the stream from where it stopped, and handles each id once.
// Start: REDIS_URL=redis://127.0.0.1:6379 node docs/examples/consumer.mjs [last stream id handled]
import { Redis } from 'ioredis';

const stream = new Redis(process.env.REDIS_URL);
const channel = new Redis(process.env.REDIS_URL);
const handled = new Set(); // in your service: a unique key in your own database, written with the clean-up
let last = process.argv[2] ?? '0'; // in your service: stored with it

async function catchUp() {
  for (let found; (found = await stream.xread('COUNT', 100, 'STREAMS', 'idp:events', last)); ) {
    for (const [entry, [, json]] of found[0][1]) {
      const event = JSON.parse(json);
      if (!handled.has(event.id) && event.type === 'identity.user.deleted') console.log(`clean up after ${event.userId}`);
      handled.add(event.id);
      last = entry;
    }
  }
}
let turn = Promise.resolve(); // one look at a time, so that order is kept
const look = () => (turn = turn.then(catchUp).catch((error) => console.error(error.message)));
channel.on('message', look); // the channel says when to look, the stream says what there is
channel.on('ready', () => channel.subscribe('identity.user.deleted').then(look, console.error)); // also after a lost connection
