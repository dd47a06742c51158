import ipaddr from 'ipaddr.js';
import type { Cidr } from '../config/readers.js';
import type { Headers } from './call.js';

/** More hops than any real chain of proxies has. */
const MOST_HOPS = 32;

export interface ClientAddress {
  ip: string;
  /** What limits and familiarity count: the IPv4 address, or the /64 of an IPv6 address. */
  network: string;
  /** Whether the peer is a trusted proxy. */
  viaProxy: boolean;
}

/**
 * The client's address: the right-most hop of X-Forwarded-For or Forwarded (RFC 7239) that is not a trusted proxy.
 * Headers of untrusted peers and headers with garbage in them are ignored.
 */
export const clientAddress = (peer: string, headers: Headers, trusted: Cidr[]): ClientAddress => addressBehind(peerAt(peer, trusted), headers, trusted);

/** The other end of a socket. */
interface Peer {
  direct: Address | null;
  viaProxy: boolean;
}

function peerAt(text: string, trusted: Cidr[]): Peer {
  const direct = parse(text);
  return { direct, viaProxy: direct !== null && isTrusted(direct, trusted) };
}

function addressBehind({ direct, viaProxy }: Peer, headers: Headers, trusted: Cidr[]): ClientAddress {
  if (!direct) return { ip: '0.0.0.0', network: '0.0.0.0', viaProxy };
  let client = direct;
  if (viaProxy) {
    for (const hop of hops(headers).slice(-MOST_HOPS).reverse()) {
      const address = parse(hop);
      if (!address) return { ...described(direct), viaProxy };
      client = address;
      if (!isTrusted(client, trusted)) break;
    }
  }
  return { ...described(client), viaProxy };
}

/** Addresses remembered at most. */
const MOST_REMEMBERED = 4_096;
/** Longer headers are not remembered: they are somebody's idea of fun. */
const LONGEST = 256;

/** Reads client addresses and remembers them, since one client sends many requests. */
export function clientAddresses(trusted: Cidr[]): (peer: string, headers: Headers) => ClientAddress {
  const known = new Map<string, ClientAddress>();
  let last: Peer & { text: string } = { text: '', direct: null, viaProxy: false };
  return (peer, headers) => {
    // No header holds a line break, so that neither can pass for the other.
    const key = `${peer}\n${headers.get('x-forwarded-for') ?? `\n${headers.get('forwarded') ?? ''}`}`;
    const before = known.get(key);
    if (before) return before;
    // Behind a proxy it is the same one again and again.
    if (last.text !== peer) last = { text: peer, ...peerAt(peer, trusted) };
    const address = addressBehind(last, headers, trusted);
    if (key.length > LONGEST) return address;
    known.set(key, address);
    // A Map keeps insertion order: the oldest goes first.
    if (known.size > MOST_REMEMBERED) known.delete(known.keys().next().value!);
    return address;
  };
}

function hops(headers: Headers): string[] {
  const plain = headers.get('x-forwarded-for');
  if (plain !== undefined) return plain.split(',').map((hop) => hop.trim());
  const standard = headers.get('forwarded');
  if (standard === undefined) return [];
  return standard.split(',').map((element) => /(?:^|;)\s*for="?([^";,]*)"?/i.exec(element)?.[1] ?? '');
}

type Address = ipaddr.IPv4 | ipaddr.IPv6;

function parse(text: string): Address | null {
  const bare = text.includes(':') ? withoutPort(text) : text;
  if (bare.includes('%')) return null;
  if (ipaddr.IPv4.isValidFourPartDecimal(bare)) return ipaddr.IPv4.parse(bare);
  if (!ipaddr.IPv6.isValid(bare)) return null;
  const address = ipaddr.IPv6.parse(bare);
  return address.isIPv4MappedAddress() ? address.toIPv4Address() : address;
}

/** A port may follow: 192.0.2.1:80 or [2001:db8::1]:80. */
const withoutPort = (text: string): string => /^\[([^\]]+)\](?::\d{1,5})?$/.exec(text)?.[1] ?? /^(\d+\.\d+\.\d+\.\d+):\d{1,5}$/.exec(text)?.[1] ?? text;

function isTrusted(address: Address, trusted: Cidr[]): boolean {
  return trusted.some(([range, bits]) => range.kind() === address.kind() && address.match(range, bits));
}

function described(address: Address): Omit<ClientAddress, 'viaProxy'> {
  const ip = address.toString();
  if (address.kind() === 'ipv4') return { ip, network: ip };
  const prefix = new ipaddr.IPv6([...(address as ipaddr.IPv6).parts.slice(0, 4), 0, 0, 0, 0]);
  return { ip, network: `${prefix.toString()}/64` };
}
