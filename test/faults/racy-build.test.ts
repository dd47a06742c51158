import t from 'tap';
import { tally, WRONG } from '../support/attempts.js';
import { openInbox } from '../support/inbox.js';
import { startNodes } from '../support/nodes.js';
import { times } from '../support/otp.js';
import { signedIn, wrong } from '../support/owner.js';
import { brokenBuild } from '../support/racy.js';
import { volley, whileHeld } from '../support/races.js';

// A race test that a racy build passes shows nothing. Here the condition that decides is taken out of the build.

t.test('without the reservation of guesses more are verified than lock an account', async (t) => {
  const main = brokenBuild(t, 'lua/login-reserve.lua', "if redis.call('ZCARD', held) >= math.max(1, threshold - failures) then", 'if false then');
  // A dear hash, so that all have entered before the first has failed.
  const { nodes, account } = await startNodes(t, 3, { ARGON2_MEMORY_KIB: '32768' }, main);
  const { email } = await account();
  const counts = tally(await volley(nodes, 60, '/api/auth/login', () => ({ email, password: WRONG })));
  t.ok(counts['INVALID_CREDENTIALS']! > 5, `${counts['INVALID_CREDENTIALS']} guesses were verified`);
});

t.test('without the conditions of the rotation one token has several successors', async (t) => {
  const main = brokenBuild(t, 'dist/src/store/sessions.js', 'WHERE s.generation = w.fromGeneration AND s.secret_hash = w.fromHash', 'WHERE TRUE');
  const { nodes, account, needs } = await startNodes(t, 3, {}, main);
  const { email, password } = await account();
  const { refreshToken } = (await nodes[0]!.client().login(email, password)).body;
  const answers = await whileHeld(needs.mysql, () => volley(nodes, 30, '/api/auth/refresh', () => ({ refreshToken })));
  const successors = new Set(answers.filter(({ status }) => status === 200).map(({ body }) => body['refreshToken'])).size;
  t.ok(successors > 1, `${successors} successors`);
});

t.test('without the wait for a slot some right logins of a burst are refused', async (t) => {
  const main = brokenBuild(t, 'dist/src/auth/gate.js', 'if (performance.now() > deadline)', 'if (deadline > 0)');
  const { nodes, account } = await startNodes(t, 1, {}, main);
  const { email, password } = await account();
  const counts = tally(await volley(nodes, 100, '/api/auth/login', () => ({ email, password })));
  t.ok(counts['LOGIN_THROTTLED']! > 0, JSON.stringify(counts));
});

t.test('without the count before the check more one-time codes are guessed at than lock', async (t) => {
  const inbox = openInbox(t);
  const main = brokenBuild(t, 'lua/otp-claim.lua', 'if failures >= maxFailures then return {2, failuresUntil - now} end', '');
  const { nodes, account } = await startNodes(t, 1, inbox.settings, main);
  const owner = await signedIn({ account, client: (options) => nodes[0]!.client(options) }, inbox);
  const code = await owner.deletionCode();
  const counts = tally(await times(30, () => owner.delete(wrong(code))));
  t.ok(counts['OTP_INVALID']! > 5, JSON.stringify(counts));
});

t.test('a build is not taken for broken when the text to break is not there', (t) => {
  t.throws(() => brokenBuild(t, 'lua/login-reserve.lua', 'no such text', ''), /0 times/);
  t.end();
});
