// Objects to the deletion of accounts that still have a booking. The service must know it:
// DELETION_VALIDATORS=bookings:required
// Start: REDIS_URL=redis://127.0.0.1:6379 node docs/examples/deletion-validator.mjs
import { Redis } from 'ioredis';

const QUESTION = 'identity.user.pre_deletion_validate';
const questions = new Redis(process.env.REDIS_URL);
const answers = new Redis(process.env.REDIS_URL);
const hasBooking = async (userId) => (process.env.BOOKED ?? '').split(',').includes(userId); // in your service: a query

questions.on('message', async (_channel, json) => {
  const { userId, replyTo, deadline } = JSON.parse(json);
  const blocked = await hasBooking(userId);
  if (Date.now() > Date.parse(deadline)) return; // nobody waits any longer
  await answers.rpush(replyTo, JSON.stringify(blocked ? { source: 'bookings', reason: 'active booking' } : { source: 'bookings' }));
});
await questions.subscribe(QUESTION); // repeated by the client after a lost connection
console.log('ready');
