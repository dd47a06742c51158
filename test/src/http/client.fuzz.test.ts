import fc, { type Arbitrary } from 'fast-check';
import { isIP } from 'node:net';
import t from 'tap';
import { cidrs } from '../../../src/config/readers.js';
import type { Headers } from '../../../src/http/call.js';
import { clientAddress, clientAddresses } from '../../../src/http/client.js';
import { figure } from '../../support/figures.js';
import { anyText, holds, leastMs, textOf } from '../../support/fuzz.js';

const TRUSTED = cidrs('127.0.0.0/8,::1/128,10.0.0.0/8');
const PEER = '127.0.0.1';

const sent = (values: Record<string, string>): Headers => ({ get: (name) => values[name], twice: () => false });
const ipOf = (values: Record<string, string>, peer = PEER): string => clientAddress(peer, sent(values), TRUSTED).ip;

/** Addresses as a URL writes them: another reader's opinion of what is the same. */
const canonical = (ip: string): string => (ip.includes(':') ? new URL(`http://[${ip}]`).hostname.slice(1, -1) : ip);

const strangers: Arbitrary<string> = fc.oneof(
  fc.ipV4().filter((ip) => !ip.startsWith('127.') && !ip.startsWith('10.')),
  // Neither loopback nor IPv4 in IPv6, which is read as IPv4.
  fc.ipV6().filter((ip) => canonical(ip) !== '::1' && !canonical(ip).startsWith('::ffff:') && !ip.includes('.')),
);
const proxies = fc.oneof(fc.nat(0xffffff).map((n) => `10.${n >> 16}.${(n >> 8) & 255}.${n & 255}`), fc.constantFrom('127.0.0.1', '::1', '::ffff:10.1.2.3'));
const withPort = (ip: string, port: number | null): string => (port === null ? ip : ip.includes(':') ? `[${ip}]:${port}` : `${ip}:${port}`);
const hop = (ips: Arbitrary<string>): Arbitrary<{ ip: string; text: string }> => fc.tuple(ips, fc.option(fc.nat(65535))).map(([ip, port]) => ({ ip, text: withPort(ip, port) }));
const chain = fc.record({ client: hop(strangers), before: fc.array(fc.oneof(hop(strangers).map(({ text }) => text), anyText.map((text) => text.replaceAll(',', ''))), { maxLength: 40 }), behind: fc.array(hop(proxies), { maxLength: 8 }) });
const messy = fc.oneof(anyText, textOf('for=', '"', '[', ']', ':', ',', ';', '=', '192.0.2.1', '10.0.0.1', '::1', '2001:db8::', '%eth0', '0x7f.1', '127.1', '::ffff:1.2.3.4', '65536', 'unknown', '_hidden', ' ', '\t'));

t.test('the client is the right-most hop that is no proxy, and whatever else is sent makes no difference and no noise', (t) => {
  let tried = 0;
  tried += holds(t, 'X-Forwarded-For: what stands before the client does not count', chain, ({ client, before, behind }) => ipOf({ 'x-forwarded-for': [...before, client.text, ...behind.map(({ text }) => text)].join(', ') }) === canonical(client.ip));
  tried += holds(t, 'Forwarded: likewise', chain, ({ client, before, behind }) =>
    ipOf({ forwarded: [...before.map((text) => `for="${text.replaceAll(/[";]/g, '')}"`), ...[client, ...behind].map(({ text }) => `proto=https;for="${text}"`)].join(', ') }) === canonical(client.ip),
  );
  tried += holds(t, 'a peer that is no proxy is the client', fc.tuple(strangers, messy), ([peer, text]) => ipOf({ 'x-forwarded-for': text, 'forwarded': text }, peer) === canonical(peer));
  tried += holds(t, 'anything gives an address, and the memory of it gives the same', fc.tuple(fc.oneof(messy, proxies, strangers), messy, fc.boolean()), ([peer, text, plain]) => {
    const headers = sent(plain ? { 'x-forwarded-for': text } : { forwarded: text });
    const remembered = clientAddresses(TRUSTED);
    const first = clientAddress(peer, headers, TRUSTED);
    return isIP(first.ip) !== 0 && [0, 1].every(() => JSON.stringify(remembered(peer, headers)) === JSON.stringify(first));
  });
  tried += holds(t, 'all hosts of one /64 are one network, and no other is', fc.tuple(fc.bigInt(0n, 2n ** 64n - 1n), fc.bigInt(0n, 2n ** 64n - 1n), fc.bigInt(0n, 2n ** 64n - 1n)), ([network, one, other]) => {
    const groups = (n: bigint): string => n.toString(16).padStart(16, '0').match(/.{4}/g)!.join(':');
    const at = (prefix: bigint, host: bigint): string => clientAddress(`${groups(prefix)}:${groups(host)}`, sent({}), []).network;
    if (network === 0n) return true;
    return at(network, one) === at(network, other) && (network === other || other === 0n || at(network, one) !== at(other, one));
  });
  const slowest = Math.max(...['for=', '"', '1.', '[', ':', ',', ' ', 'for="', '1.1.1.1,', 'for=::1,', ';for='].map((piece) => leastMs(() => ipOf({ 'x-forwarded-for': piece.repeat(16_000 / piece.length) })) + leastMs(() => ipOf({ forwarded: piece.repeat(16_000 / piece.length) }))));
  figure(t, 'T09', { did: `${tried} generated chains of hops and headers; 22 of 16 KiB timed`, figure: `no disagreement with the rule; ${slowest.toFixed(1)} ms for the slowest`, ok: tried > 0 && slowest < 50 });
  t.end();
});
