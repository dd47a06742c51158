import t from 'tap';
import { cidrs } from '../../../src/config/readers.js';
import { clientAddress, clientAddresses } from '../../../src/http/client.js';
import { startApp } from '../../support/app.js';
import { figure } from '../../support/figures.js';
import { converse } from '../../support/raw.js';

const TRUSTED = cidrs('127.0.0.0/8,::1/128,10.0.0.0/8');

const seen = (peer: string, sent: Record<string, string> = {}): string => clientAddress(peer, { get: (name) => sent[name], twice: () => false }, TRUSTED).ip;
const forwarded = (peer: string, value: string): string => seen(peer, { 'x-forwarded-for': value });

t.test('a peer that is no trusted proxy is the client, whatever it claims', (t) => {
  t.equal(forwarded('192.0.2.1', '198.51.100.7'), '192.0.2.1');
  t.equal(seen('192.0.2.1', { forwarded: 'for=198.51.100.7' }), '192.0.2.1');
  t.equal(forwarded('2001:db8::1', '198.51.100.7'), '2001:db8::1');
  t.end();
});

t.test('behind trusted proxies the client is the right-most hop that is not one', (t) => {
  t.equal(forwarded('127.0.0.1', '198.51.100.7'), '198.51.100.7');
  t.equal(forwarded('127.0.0.1', '203.0.113.9, 198.51.100.7'), '198.51.100.7', 'what the client put in front does not count');
  t.equal(forwarded('127.0.0.1', '203.0.113.9,198.51.100.7,10.0.0.5'), '198.51.100.7');
  t.equal(forwarded('127.0.0.1', '10.0.0.6, 10.0.0.5'), '10.0.0.6', 'all of them proxies');
  t.equal(forwarded('::1', '2001:DB8:0:0::5'), '2001:db8::5');
  t.equal(forwarded('127.0.0.1', '198.51.100.7:4711'), '198.51.100.7', 'with a port');
  t.equal(forwarded('127.0.0.1', '[2001:db8::5]:4711'), '2001:db8::5');
  t.equal(forwarded('127.0.0.1', '::ffff:198.51.100.7'), '198.51.100.7', 'IPv4 in IPv6');
  t.equal(forwarded('::ffff:127.0.0.1', '198.51.100.7'), '198.51.100.7');
  t.equal(forwarded('127.0.0.1', '127.0.0.1'), '127.0.0.1');
  t.equal(forwarded('127.0.0.1', `${'203.0.113.9,'.repeat(1000)}198.51.100.7`), '198.51.100.7', 'a thousand hops');
  t.end();
});

t.test('Forwarded (RFC 7239) is read like X-Forwarded-For, which comes first', (t) => {
  t.equal(seen('127.0.0.1', { forwarded: 'for=198.51.100.7;proto=https, for=10.0.0.5' }), '198.51.100.7');
  t.equal(seen('127.0.0.1', { forwarded: 'proto=https;For="[2001:db8::5]:4711"' }), '2001:db8::5');
  t.equal(seen('127.0.0.1', { 'forwarded': 'for=203.0.113.9', 'x-forwarded-for': '198.51.100.7' }), '198.51.100.7');
  t.end();
});

t.test('a header with garbage in it falls back to the peer', (t) => {
  for (const value of ['', 'unknown', 'localhost', '198.51.100.7;', '300.1.1.1', '1.2.3', '010.0.0.1', '0x7f.1.1.1', '198.51.100.7,,', 'fe80::1%eth0', "1' OR '1'='1", '198.51.100.7, _hidden']) {
    t.equal(forwarded('127.0.0.1', value), '127.0.0.1', JSON.stringify(value));
  }
  for (const value of ['', 'for=unknown', 'for=_gazonk', 'by=198.51.100.7', 'for=']) t.equal(seen('127.0.0.1', { forwarded: value }), '127.0.0.1', value);
  t.equal(seen('', { 'x-forwarded-for': '198.51.100.7' }), '0.0.0.0', 'a socket that is gone has no address');
  t.end();
});

t.test('IPv6 is counted by its /64', (t) => {
  const network = (value: string): string => clientAddress('127.0.0.1', { get: (name) => (name === 'x-forwarded-for' ? value : undefined), twice: () => false }, TRUSTED).network;
  t.equal(network('2001:db8:1:2:3:4:5:6'), '2001:db8:1:2::/64');
  t.equal(network('2001:db8:1:2:ffff::1'), '2001:db8:1:2::/64');
  t.not(network('2001:db8:1:3::1'), '2001:db8:1:2::/64');
  t.equal(network('198.51.100.7'), '198.51.100.7');
  t.equal(network('::ffff:198.51.100.7'), '198.51.100.7');
  t.end();
});

t.test('a limit by address cannot be passed by inventing addresses', async (t) => {
  const { client } = await startApp(t, { LIMIT_LOGIN_IP: '3/60' });
  const attempt = (forwardedFor: string) => client().login('nobody@example.com', 'wrong', 'json', { 'x-forwarded-for': forwardedFor });
  const statuses: number[] = [];
  for (let i = 0; i < 6; i += 1) statuses.push((await attempt(`203.0.113.${i}, 198.51.100.7`)).status);
  t.same(statuses.slice(3), [429, 429, 429]);
  const beyond = statuses.slice(3).filter((status) => status !== 429).length;
  t.match(await attempt('198.51.100.8'), { status: 401 }, 'another client is free');
  for (let i = 0; i < 4; i += 1) t.not((await attempt(`2001:db8:1:2::${i}`)).status, 500);
  const sixth = await attempt('2001:db8:1:2:9::');
  t.match(sixth, { status: 429, body: { code: 'RATE_LIMITED' } });
  figure(t, 'T09', { did: 'a limit of 3: six invented first hops, then hosts of one /64', figure: `${beyond + (sixth.status === 429 ? 0 : 1)} requests beyond it`, ok: beyond === 0 && sixth.status === 429 });
});

t.test('an address in a PROXY preamble is not believed', async (t) => {
  const { app, account } = await startApp(t, { TRUSTED_PROXIES: '192.0.2.0/24' });
  const { email, password } = await account();
  const body = JSON.stringify({ email, password });
  const preamble = Buffer.concat([Buffer.from('0d0a0d0a000d0a515549540a', 'hex'), Buffer.from([0x21, 0x11, 0, 12, 9, 9, 9, 9, 127, 0, 0, 1, 0, 80, 0, 80])]);
  const talk = await converse(app.port);
  talk.send(preamble, `POST /api/auth/login HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
  const { status } = await talk.reply();
  talk.socket.destroy();
  const sessions = await app.needs.mysql.rows<{ address: string }>('SELECT ip_address AS address FROM sessions');
  if (status === 200) t.same(sessions, [{ address: '127.0.0.1' }]);
  else t.match([status, sessions], [400, []], 'a build that does not know the preamble refuses it');
  const forged = sessions.filter(({ address }) => address !== '127.0.0.1').length;
  figure(t, 'T10', { did: 'a login behind a PROXY v2 preamble that names 9.9.9.9', figure: `answered ${status}, ${forged} sessions from there`, ok: forged === 0 });
});

t.test('what is remembered of one client is never told of another', (t) => {
  const address = clientAddresses(TRUSTED);
  const from = (peer: string, sent: Record<string, string>): string => address(peer, { get: (name) => sent[name], twice: () => false }).ip;
  for (let round = 0; round < 2; round += 1) {
    t.equal(from('127.0.0.1', { 'x-forwarded-for': 'for=198.51.100.7' }), '127.0.0.1', 'garbage');
    t.equal(from('127.0.0.1', { forwarded: 'for=198.51.100.7' }), '198.51.100.7');
    t.equal(from('127.0.0.1', { 'x-forwarded-for': '198.51.100.8' }), '198.51.100.8');
    t.equal(from('10.0.0.1', { 'x-forwarded-for': '198.51.100.9' }), '198.51.100.9');
    t.equal(from('192.0.2.1', { 'x-forwarded-for': '198.51.100.9' }), '192.0.2.1');
    t.equal(from('127.0.0.1', {}), '127.0.0.1');
    for (let i = 0; i < 5000; i += 1) from('127.0.0.1', { 'x-forwarded-for': `198.51.${i >> 8}.${i & 255}` });
  }
  t.end();
});
