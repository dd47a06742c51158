import t from 'tap';
import { readAccessToken } from '../../../src/auth/access-token.js';
import { startApp } from '../../support/app.js';
import { figure, scaled } from '../../support/figures.js';
import { forgeriesOf } from '../../support/forgeries.js';

const { app, client, account } = await startApp(t);
const { email, password } = await account();
const issued = (await client().login(email, password)).body as Record<string, string>;
const token = issued['accessToken']!;
const others = { 'a refresh token': issued['refreshToken']!, 'a jti': issued['jti']!, 'a session id': String((await client().profile(token)).body['sessionId']) };
const made = [...forgeriesOf({ token, key: app.needs.signingKeys.current().privateKey, now: Math.floor(Date.now() / 1000), others })];
/** Two ways may lead to one token. */
const forgeries = [...new Map(made.map(([what, text]) => [text, [what, text] as const])).values()];

/** What fits into a header; the rest can only be read directly. */
const fits = (text: string): boolean => /^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/.test(text);

t.test('there are hundreds of them, and none is the token itself', (t) => {
  t.same(forgeries.filter(([, text]) => text === token), []);
  t.ok(forgeries.length >= 385, `${forgeries.length} forgeries`);
  t.end();
});

t.test('no forged token is accepted, as header or as cookie', { timeout: 60_000 }, async (t) => {
  const from = client();
  // In the short run every third goes over the wire.
  const sent = forgeries.filter(([, text]) => fits(text)).filter((_, i) => i % scaled(3, 1) === 0);
  const wrong: string[] = [];
  let accepted = 0;
  const show = async (what: string, headers: Record<string, string>): Promise<void> => {
    const { status, body } = await from.request('GET', '/api/auth/profile', { headers });
    if (status < 300) accepted += 1;
    if (status !== 401 || body['code'] !== 'UNAUTHENTICATED') wrong.push(`${what}: ${status}`);
  };
  for (let i = 0; i < sent.length; i += 8) {
    await Promise.all(sent.slice(i, i + 8).flatMap(([what, text]) => [show(what, { authorization: `Bearer ${text}` }), show(what, { cookie: `idp_at=${text}` })]));
  }
  t.same(wrong, []);
  t.equal((await from.profile(token)).status, 200, 'the token itself is good all the while');
  figure(t, 'T54', { did: `${sent.length} classes of forged tokens, made from a good one, each as header and as cookie`, figure: `${accepted} accepted, ${sent.length * 2 - wrong.length} of ${sent.length * 2} answered 401`, ok: accepted === 0 && wrong.length === 0 });
});

t.test('none is read as the token of a living session, and the median of their times is below a millisecond', async (t) => {
  const times: number[] = [];
  let read = 0;
  for (const [, text] of forgeries) {
    let least = Infinity;
    // The least of several: what one took longer for was another's work on the same core.
    for (let i = 0; i < 5; i += 1) {
      const started = performance.now();
      const claims = await readAccessToken(app.needs, text);
      least = Math.min(least, performance.now() - started);
      // Another subject or session may be well signed: it is the look at the session that refuses it.
      if (i === 0 && claims !== null && claims.sid === others['a session id'] && claims.sub === (await client().profile(token)).body['id']) read += 1;
    }
    times.push(least);
  }
  t.equal(read, 0);
  times.sort((a, b) => a - b);
  const [median, slowest] = [times[times.length >> 1]!, times.at(-1)!];
  figure(t, 'T54', { did: `${forgeries.length} of them read directly`, figure: `median ${median.toFixed(3)} ms, slowest ${slowest.toFixed(1)} ms (a kid in the form of ours is looked for in the database)`, ok: median < 1 });
});
