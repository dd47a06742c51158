import t from 'tap';
import { tally, WRONG } from '../support/attempts.js';
import { figure, scaled } from '../support/figures.js';
import { startNodes } from '../support/nodes.js';
import { verifiedGuesses, volley } from '../support/races.js';

// Without delays, which would keep most of the guesses out of the race, and with locks that outlast it: after one a guess is due again.
const { nodes, account, needs } = await startNodes(t, 3, { LOGIN_DELAYS_S: '0', LOCKOUT_MINUTES: '15,30,60' });
const LOGIN = '/api/auth/login';

const GUESSES = scaled(500, 10_000);

t.test(`of ${GUESSES} wrong guesses at once on three nodes exactly as many are verified as lock the account`, async (t) => {
  const { id, email, password } = await account();
  const answers = await volley(nodes, GUESSES, LOGIN, () => ({ email, password: WRONG }));
  const counts = tally(answers);
  t.equal(counts['INVALID_CREDENTIALS'], 5, 'verified guesses minus threshold is 0');
  // A machine that is busy with other things may run into the stores' timeouts.
  t.same(Object.keys(counts).filter((code) => !['INVALID_CREDENTIALS', 'ACCOUNT_LOCKED', 'LOGIN_THROTTLED', 'UNAVAILABLE'].includes(code)), []);
  const verified = await verifiedGuesses(needs.mysql, id);
  t.equal(verified, 5, 'and so many failures are on record');
  const late = await volley(nodes, 21, LOGIN, () => ({ email, password }));
  t.same(tally(late), { ACCOUNT_LOCKED: 21 }, 'the right password is refused on every node');
  figure(t, 'T02', { did: `${GUESSES} wrong guesses at once on 3 nodes, then 21 right ones`, figure: `${verified} verified, overrun ${verified - 5}; ${tally(late)['OK'] ?? 0} right ones accepted`, ok: verified === 5 && !tally(late)['OK'] });
});

t.test('the right password among many wrong ones never opens a session after the lock fell', async (t) => {
  for (let round = 0; round < 5; round += 1) {
    const { id, email, password } = await account();
    const answers = await volley(nodes, 60, LOGIN, (i) => ({ email, password: i % 6 === 5 ? password : WRONG }));
    const { OK = 0, INVALID_CREDENTIALS: wrong = 0 } = tally(answers);
    const [row] = await needs.mysql.rows<{ n: number }>('SELECT COUNT(*) AS n FROM sessions WHERE user_id = ? AND revoked_at IS NULL', [id]);
    t.equal(row!.n, OK, 'every session was handed out');
    // Each success clears the counts; between two of them no more guesses than the threshold.
    t.ok(wrong <= 5 * (OK + 1), `${wrong} guesses between ${OK} successes`);
    if (OK > 0) continue;
    t.equal(wrong, 5);
    t.same(tally(await volley(nodes, 3, LOGIN, () => ({ email, password }))), { ACCOUNT_LOCKED: 3 }, 'and the refused attempt made nothing familiar');
  }
});

t.test('100 right logins of one account at once on three nodes all succeed', async (t) => {
  const { id, email, password } = await account();
  const answers = await volley(nodes, 100, LOGIN, () => ({ email, password }));
  t.same(tally(answers), { OK: 100 });
  const sessions = new Set(answers.map(({ body }) => body['refreshToken'])).size;
  t.equal(sessions, 100);
  const [row] = await needs.mysql.rows<{ n: number; locked: unknown }>('SELECT COUNT(*) AS n, (SELECT locked_until FROM users WHERE id = ?) AS locked FROM sessions WHERE user_id = ?', [id, id]);
  t.same(row, { n: 100, locked: null }, '100 distinct sessions and no lock');
  figure(t, 'T03', { did: '100 right logins of one account at once on 3 nodes', figure: `${tally(answers)['OK']} × 200, ${sessions} sessions, ${row!.locked === null ? 'no lock' : 'locked'}`, ok: sessions === 100 && row!.locked === null });
});
