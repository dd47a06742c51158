import t, { type Test } from 'tap';
import * as read from '../../../src/config/readers.js';

/** Texts that a reader takes, with their values, and texts that it refuses. */
function reads<T>(t: Test, reader: read.Reader<T>, taken: [string, unknown][], refused: string[]): void {
  for (const [text, value] of taken) t.strictSame(reader(text), value, text);
  for (const text of refused) t.throws(() => reader(text), Error, `refuses ${JSON.stringify(text)}`);
}

t.test('each reader takes what its setting means, as its value, and refuses the rest', (t) => {
  reads(t, read.int(0, 10), [['0', 0], ['10', 10], [' 5', 5]], ['11', '-1', '5.5', 'x', ' ', '5x', 'Infinity', 'NaN']);
  reads(t, read.real(0.5, 2), [['0.5', 0.5], ['2', 2]], ['0.4', '2.1', '']);
  reads(t, read.reals(0, 60), [['15', [15]], ['15,30.5, 60', [15, 30.5, 60]]], ['', '15,', '15;30', '61']);
  reads(t, read.flag, [['0', false], ['1', true]], ['true', 'yes', '2', '']);
  reads(t, read.oneOf('a', 'b'), [['b', 'b']], ['c', 'A', '']);
  reads(t, read.list, [['', []], ['a, b,,c ', ['a', 'b', 'c']]], []);
  reads(t, read.optional(read.flag), [['', null], ['1', true]], ['x']);
  reads(t, read.limit, [['0', null], ['3/300', { max: 3, windowMs: 300_000 }], ['1/0.5', { max: 1, windowMs: 500 }]], ['3', '0/300', '3/0', '-3/300', '3/300/1', '3 / 300', '1e3/5', '']);
  reads(t, read.url('redis:', 'rediss:'), [['rediss://h:1/0', 'rediss://h:1/0']], ['http://h', 'redis://', 'h:6379', '']);
  reads(t, read.mysqlUrl, [['mysql://u:p@h:1/db', 'mysql://u:p@h:1/db'], ['mysql://h/db?ssl={}', 'mysql://h/db?ssl={}']], ['mysql://h', 'mysql://h/', 'mysql://h/a/b', 'mysql:///db', 'mariadb://h/db']);
  reads(t, read.origins, [['https://a.example,http://b.example:8080', ['https://a.example', 'http://b.example:8080']], ['', []]], ['*', 'null', 'https://a.example/', 'https://a.example/x', 'a.example', 'https://A.example', 'https://u:p@a.example', 'file:///x']);
  reads(t, read.domain, [['example.com', 'example.com'], ['.example.com', '.example.com']], ['https://example.com', 'example.com; Secure', 'example.com:80', '.', 'a..b', 'a b']);
  reads(t, read.validators, [['bookings:required, crm:advisory', [{ source: 'bookings', required: true }, { source: 'crm', required: false }]], ['', []]], ['bookings', 'bookings:maybe', ':required', 'a b:required']);
  t.end();
});

t.test('a secret is at least 32 bytes in base64 or base64url, and nothing is dropped from it', (t) => {
  const bytes = Buffer.from('fb'.repeat(32), 'hex');
  t.strictSame(read.secret(bytes.toString('base64')), bytes);
  t.strictSame(read.secret(bytes.toString('base64url')), bytes);
  const text = bytes.toString('base64');
  for (const wrong of ['', 'change me', bytes.subarray(1).toString('base64'), `${text.slice(0, 20)} ${text.slice(20)}`, `${text}\n${text}`, 'correct horse battery staple, correct horse battery staple']) t.throws(() => read.secret(wrong), /openssl rand -base64 32/);
  t.end();
});

t.test('trusted proxies are addresses or ranges', (t) => {
  t.strictSame(read.cidrs('10.0.0.0/8, 192.0.2.1,::1').map(([address, bits]) => `${address.toString()}/${bits}`), ['10.0.0.0/8', '192.0.2.1/32', '::1/128']);
  t.same(read.cidrs(''), []);
  for (const wrong of ['10.0.0.0/33', 'localhost', '10.0.0.256', '::1/129']) t.throws(() => read.cidrs(wrong), /addresses or CIDR ranges/);
  t.end();
});
