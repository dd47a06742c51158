import fc from 'fast-check';
import t from 'tap';
import { ConfigError, loadConfig, settings } from '../../../src/config/load.js';
import * as read from '../../../src/config/readers.js';
import { isEmail, normaliseEmail } from '../../../src/email.js';
import { clusterAddress } from '../../../src/redis-url.js';
import { figure } from '../../support/figures.js';
import { anyText, holds, leastMs, textOf, thrown } from '../../support/fuzz.js';

/** Where an environment ends: no variable holds a NUL. */
const text = fc.oneof(anyText, textOf('redis', '+cluster', 's', '://', 'user', ':', '@', '127.0.0.1', '[::1]', '6379', '/0', '/', ',', '3/300', '0', '1', '-', '.', 'https://', 'a.example', '#', '?', '%', '%zz', 'required', 'advisory', '1e9', 'Infinity', 'NaN', '0x10', ' ')).map((one) => one.replaceAll('\0', ''));

t.test('any text in any setting is a value, or one sentence that names the variable and not the text', (t) => {
  const names = settings().map(([, { env }]) => env);
  const good = { MYSQL_URL: 'mysql://u:p@h/d', REDIS_URL: 'redis://h', SECRET_KEY: 'A'.repeat(44) };
  const MARK = 'qZx9';
  const env = fc.dictionary(fc.constantFrom(...names), fc.oneof(text, text.map((one) => MARK + one)), { maxKeys: 5 });
  const tried = holds(t, 'all settings together', env, (given) => {
    const error = thrown(() => loadConfig({ ...good, ...given }));
    // A path of a file that cannot be read is told.
    const problems = error instanceof ConfigError ? error.problems.filter((one) => !one.startsWith('OAUTH_PROVIDERS_FILE')) : [];
    return error === undefined || (error instanceof ConfigError && error.problems.length > 0 && problems.every((one) => names.some((name) => one.startsWith(name)) && !one.includes(MARK)));
  });
  figure(t, 'T59', { did: `${tried} generated environments`, figure: '0 sentences with a value in them', ok: tried > 0 });
  t.end();
});

t.test('what is read says what was written', (t) => {
  holds(t, 'limits', fc.tuple(fc.integer({ min: 1, max: 999_999 }), fc.integer({ min: 1, max: 999_999 })), ([max, seconds]) => {
    const limit = read.limit(`${max}/${seconds}`)!;
    return limit.max === max && limit.windowMs === seconds * 1000;
  });
  holds(t, 'numbers, as Number reads them', text, (one) => {
    const error = thrown(() => read.real(-10, 1e6)(one));
    const number = one.trim() === '' ? NaN : Number(one);
    return number >= -10 && number <= 1e6 ? error === undefined && Object.is(read.real(-10, 1e6)(one), number) : error instanceof Error;
  });
  holds(t, 'lists, twice as once', text, (one) => JSON.stringify(read.list(read.list(one).join(','))) === JSON.stringify(read.list(one)));
  holds(t, 'origins, as URL writes them', fc.oneof(text, fc.webUrl(), fc.webUrl().map((url) => new URL(url).origin)), (one) => {
    const error = thrown(() => read.origins(one));
    return error instanceof Error || read.origins(one).every((origin) => new URL(origin).origin === origin);
  });
  holds(t, 'URIs to return to, which fit into a header', fc.oneof(text, fc.webUrl({ withFragments: true, withQueryParameters: true })), (one) => thrown(() => read.redirectUris(one)) instanceof Error || read.redirectUris(one).every((uri) => /^[\x21-\x7e]+$/.test(uri) && new URL(uri).hash === ''));
  holds(t, 'secrets, to the byte', fc.uint8Array({ minLength: 32, maxLength: 80 }), (bytes) => (['base64', 'base64url'] as const).every((spelling) => read.secret(Buffer.from(bytes).toString(spelling)).equals(Buffer.from(bytes))));
  holds(t, 'ranges, which hold their own address', fc.tuple(fc.oneof(fc.ipV4(), fc.ipV6()), fc.nat(140)), ([ip, bits]) => {
    const error = thrown(() => read.cidrs(`${ip}/${bits}`));
    if (bits > (ip.includes(':') ? 128 : 32)) return error instanceof Error;
    const [range, length] = read.cidrs(`${ip}/${bits}`)[0]!;
    return length === bits && range.match(range, length);
  });
  t.end();
});

t.test('the address of a cluster is read back, and anything else is none', (t) => {
  const host = fc.oneof(fc.domain(), fc.ipV4());
  const nodes = fc.array(fc.record({ host, port: fc.integer({ min: 1, max: 65535 }) }), { minLength: 1, maxLength: 5 });
  const word = fc.string({ minLength: 1, maxLength: 10, unit: 'grapheme' }).map((one) => one.toWellFormed());
  holds(t, 'a good one', fc.tuple(nodes, fc.boolean(), fc.option(fc.tuple(word, word))), ([all, tls, account]) => {
    const user = account === null ? '' : `${account.map(encodeURIComponent).join(':')}@`;
    const address = clusterAddress(`redis${tls ? 's' : ''}+cluster://${user}${all.map((one) => `${one.host}:${one.port}`).join(',')}`);
    return address !== null && address.tls === tls && JSON.stringify(address.nodes) === JSON.stringify(all.map((one) => ({ ...one, host: one.host.toLowerCase() }))) && address.username === account?.[0] && address.password === account?.[1];
  });
  holds(t, 'any text', fc.oneof(text, text.map((one) => `redis+cluster://${one}`)), (one) => {
    const address = clusterAddress(one);
    return address === null || (address.nodes.length > 0 && address.nodes.every((node) => node.host !== '' && node.port >= 0 && node.port <= 65535));
  });
  t.end();
});

t.test('addresses of mails: folded in ASCII alone, once as often as twice, and never a way into a header', (t) => {
  const mail = fc.oneof(anyText, fc.emailAddress(), textOf('@', 'a', 'K', '\u212a', '\u0130', 'É', '.', '\r\n', ' ', '"', ',', '<', 'Bcc:', '\ud800', 'e\u0301'));
  let tried = 0;
  tried += holds(t, 'folding', mail, (one) => {
    const folded = normaliseEmail(one);
    return normaliseEmail(folded) === folded && folded.length === one.length && Array.from({ length: one.length }, (_, i) => i).every((i) => /[A-Z]/.test(one[i]!) || folded[i] === one[i]) && !/[A-Z]/.test(folded);
  });
  tried += holds(t, 'what is one stays one', mail, (one) => isEmail(one) === isEmail(normaliseEmail(one)));
  // eslint-disable-next-line no-control-regex -- control characters are what must not get in
  tried += holds(t, 'and is one line, with one @', mail, (one) => !isEmail(one) || (one.split('@').length === 2 && !/[\s\u0000-\u001f<>,;:"]/.test(one) && one.isWellFormed()));
  const slowest = Math.max(...['@', 'a', 'a@', '\u0301', ' '].map((piece) => leastMs(() => isEmail(piece.repeat(100_000)))));
  figure(t, 'T44', { did: `${tried} generated addresses`, figure: 'folded in ASCII alone, none a second line', ok: tried > 0 && slowest < 50 });
  t.end();
});
