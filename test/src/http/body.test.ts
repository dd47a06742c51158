import t from 'tap';
import { parseBody } from '../../../src/http/body.js';
import { startApp } from '../../support/app.js';
import { figure, scaled } from '../../support/figures.js';
import { atMost } from '../../support/patience.js';

const parse = (bytes: string | number[], type: string | undefined = 'application/json'): unknown => parseBody(Buffer.from(bytes as string), type);
const refused = { code: 'INVALID_REQUEST' };
const isRead = (bytes: string | number[]): boolean => {
  try {
    parse(bytes);
    return true;
  } catch {
    return false;
  }
};

t.test('JSON in UTF-8 is read, whatever its outer shape', (t) => {
  t.same(parse(' {"a": [1, {"b": "\\u00e9é\\ud83d\\ude00"}], "c": null} '), { a: [1, { b: 'éé😀' }], c: null });
  for (const text of ['null', '[]', '"text"', '0', 'true']) t.same(parse(text), JSON.parse(text));
  t.same(parse('[[[[[[[[1]]]]]]]]'), [[[[[[[[1]]]]]]]], 'depth 8');
  t.same(parse('{"a":{"x":1},"b":{"x":1},"c":"{\\"x\\":1,\\"x\\":2}"}'), { a: { x: 1 }, b: { x: 1 }, c: '{"x":1,"x":2}' }, 'equal names in different objects');
  t.end();
});

t.test('text that is not strict JSON is refused', (t) => {
  const texts = ['', ' ', '{', '{"a":1,}', "{'a':1}", '{a:1}', '{"a":1}{', '01', 'NaN', '1e400', '-1e400', '[1e999]', '\ufeff{}', '"\\ud800"', '["\\udc00\\ud800"]', '{"a\n":1}', '{"a":"b\tc"}'];
  for (const text of texts) t.throws(() => parse(text), refused, JSON.stringify(text));
  t.end();
});

t.test('bytes that are not UTF-8 are refused, never replaced', (t) => {
  const bytes = [[0x22, 0xff, 0x22], [0x22, 0xc0, 0xaf, 0x22], [0x22, 0xed, 0xa0, 0x80, 0x22], [0x22, 0xf4, 0x90, 0x80, 0x80, 0x22], [0x22, 0xe2, 0x82, 0x22], [0xfe, 0xff, 0x00, 0x22]];
  for (const some of bytes) t.throws(() => parse(some), refused, Buffer.from(some).toString('hex'));
  const accepted = bytes.filter((some) => isRead(some)).length;
  figure(t, 'T42', { did: `${bytes.length} sequences that are not UTF-8`, figure: `${accepted} accepted`, ok: accepted === 0 });
  t.end();
});

t.test('a body deeper than 8 is refused, cheaply', (t) => {
  t.throws(() => parse('[[[[[[[[[1]]]]]]]]]'), refused);
  const started = performance.now();
  t.throws(() => parse('['.repeat(16 * 1024)), refused);
  t.throws(() => parse(`${'{"a":'.repeat(3000)}1${'}'.repeat(3000)}`), refused);
  t.throws(() => parse(`"${'\\"'.repeat(8000)}`), refused);
  t.ok(performance.now() - started < atMost(50), 'within milliseconds');
  t.same(parse(JSON.stringify(`${'['.repeat(100)}"`)), `${'['.repeat(100)}"`, 'brackets in a string are no depth');
  t.end();
});

t.test('a name that stands twice or reaches a prototype is refused at any depth, however it is written', (t) => {
  const texts = ['{"a":1,"a":1}', '{"a":1,"\\u0061":2}', '[{"b":{"a":1,"a":1}}]', '{"__proto__":{}}', '{"a":[{"constructor":1}]}', '{"\\u005f_proto__":1}', '{"prototype":1}'];
  for (const text of texts) t.throws(() => parse(text), refused, text);
  const accepted = texts.filter((text) => isRead(text)).length;
  figure(t, 'T43', { did: `${texts.length} bodies with names twice or of a prototype, escaped too`, figure: `${accepted} accepted`, ok: accepted === 0 });
  t.end();
});

t.test('only application/json in UTF-8 is a JSON body', (t) => {
  for (const type of ['application/json', 'Application/JSON', 'application/json;charset=utf-8', 'application/json; charset="UTF-8"']) t.same(parse('{}', type), {}, type);
  for (const type of ['text/plain', 'application/json; charset=latin1', 'application/jsonp', 'application/x-www-form-urlencoded', 'text/plain;application/json', 'multipart/form-data', '']) {
    t.throws(() => parse('{}', type), { code: 'UNSUPPORTED_MEDIA_TYPE' }, type);
  }
  t.throws(() => parseBody(Buffer.from('{}'), undefined), { code: 'UNSUPPORTED_MEDIA_TYPE' }, 'no type');
  t.throws(() => parseBody(Buffer.alloc(0), undefined), refused, 'neither body nor type');
  t.end();
});

t.test('hostile bodies get 400, never 500, and leave the service as it was', async (t) => {
  const { client, account } = await startApp(t);
  const { email, password } = await account();
  const hostile = client();
  const bodies: (string | Uint8Array)[] = [
    ...['', '[]', 'null', '"x"', '{}', '{"email":[],"password":{}}', '{"email":1e400,"password":"x"}', '{"email":"a","password":null}', '['.repeat(16_000)],
    JSON.stringify({ email, password }).replace('{', '{"__proto__":{"status":"active"},'),
    JSON.stringify({ email, password }).replace('{', `{"email":"other@example.com",`),
    JSON.stringify({ email, password, deviceName: ['a'] }),
    Buffer.concat([Buffer.from(`{"email":"${email}","password":"${password}`), Buffer.from([0xff]), Buffer.from('"}')]),
    `\ufeff${JSON.stringify({ email, password })}`,
  ];
  let [broken, accepted] = [0, 0];
  for (const raw of bodies) {
    const answer = await hostile.request('POST', '/api/auth/login', { raw });
    t.match(answer, { status: 400, body: { code: 'INVALID_REQUEST', errors: Array } }, raw.toString().slice(0, 60));
    if (answer.status >= 500) broken += 1;
    if (answer.status < 400) accepted += 1;
  }
  // The same 16 KiB often enough that one pause of the machine does not decide.
  const times = Array.from({ length: 50 }, () => {
    const started = performance.now();
    isRead('['.repeat(16 * 1024));
    return performance.now() - started;
  }).sort((a, b) => a - b);
  figure(t, 'T41', { did: `${bodies.length} hostile bodies at login; 16 KiB of [ parsed 50 times`, figure: `${broken} × 5xx, ${accepted} accepted; ${times[25]!.toFixed(2)} ms for one`, ok: broken === 0 && accepted === 0 && times[25]! <= scaled(50, 5) });
  figure(t, 'T42', { did: 'a login whose password has the byte ff', figure: `${accepted} logins`, ok: accepted === 0 });
  figure(t, 'T43', { did: 'a login with __proto__', figure: Object.hasOwn(Object.prototype, 'status') ? 'a prototype was changed' : `${accepted} logins, no prototype changed`, ok: accepted === 0 && !Object.hasOwn(Object.prototype, 'status') });
  t.equal((await client().login(email, password)).status, 200);
  t.notOk(Object.hasOwn(Object.prototype, 'status'));
});

t.test('each fault of a body is told with its path', async (t) => {
  const { client } = await startApp(t);
  const { body } = await client().request('POST', '/api/auth/login', { body: { email: 5, other: 'ignored' } });
  t.match(body, { status: 400, code: 'INVALID_REQUEST', errors: [{ path: '/password', message: 'is required' }, { path: '/email', message: 'must be string' }] });
});
