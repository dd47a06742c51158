import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import ipaddr from 'ipaddr.js';
import type { Teardown } from './stores.js';

/** What an entry or the metadata may hold; numbers become doubles, whole ones below `uint` unsigned. */
type Field = string | number | Uint | Field[] | { [name: string]: Field };
class Uint {
  constructor(
    readonly value: number,
    readonly type: 5 | 6 | 9,
  ) {}
}

/** Countries and positions of networks, such as `{'192.0.2.0/24': {country: 'DE', at: [52.52, 13.4]}}`. */
export type Networks = Record<string, { country?: string; at?: [latitude: number, longitude: number] }>;

const MARKER = Buffer.from('\xab\xcd\xefMaxMind.com', 'latin1');

/** A database in the MaxMind DB format 2.0, records of 24 bits; IPv4 networks stand below ::/96 of an IPv6 tree. */
export function mmdb(networks: Networks, ipVersion: 4 | 6 = 6): Buffer {
  const root: Node = [null, null];
  const data: Buffer[] = [];
  let length = 0;
  for (const [network, { country, at }] of Object.entries(networks)) {
    const entry = encode({ ...(country === undefined ? {} : { country: { iso_code: country } }), ...(at ? { location: { latitude: at[0], longitude: at[1] } } : {}) });
    insert(root, bitsOf(network, ipVersion), { offset: length });
    data.push(entry);
    length += entry.length;
  }
  const nodes = numbered(root);
  const record = (child: Child): Buffer => {
    const value = child === null ? nodes.length : Array.isArray(child) ? nodes.indexOf(child) : nodes.length + 16 + child.offset;
    return Buffer.from([value >> 16, (value >> 8) & 255, value & 255]);
  };
  const metadata = {
    binary_format_major_version: new Uint(2, 5),
    binary_format_minor_version: new Uint(0, 5),
    build_epoch: new Uint(1_767_225_600, 9),
    database_type: 'Test-City',
    description: { en: 'made by a test' },
    ip_version: new Uint(ipVersion, 5),
    languages: ['en'],
    node_count: new Uint(nodes.length, 6),
    record_size: new Uint(24, 5),
  };
  return Buffer.concat([...nodes.flatMap(([left, right]) => [record(left), record(right)]), Buffer.alloc(16), ...data, MARKER, encode(metadata)]);
}

/** A file with this database, for as long as the test runs. */
export function mmdbFile(t: Teardown, contents: Buffer): string {
  const folder = mkdtempSync(join(tmpdir(), 'portcullis-mmdb-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, 'places.mmdb');
  writeFileSync(file, contents);
  return file;
}

type Leaf = { offset: number };
type Child = Node | Leaf | null;
type Node = [Child, Child];

function bitsOf(network: string, ipVersion: 4 | 6): number[] {
  const [address, length] = ipaddr.parseCIDR(network);
  const bytes = address.toByteArray();
  const pad = ipVersion === 6 && bytes.length === 4 ? Array.from({ length: 96 }, () => 0) : [];
  return [...pad, ...bytes.flatMap((byte) => Array.from({ length: 8 }, (_, bit) => (byte >> (7 - bit)) & 1)).slice(0, length)];
}

function insert(node: Node, [bit, ...rest]: number[], leaf: Leaf): void {
  const side = bit as 0 | 1;
  if (rest.length === 0) {
    node[side] = leaf;
    return;
  }
  node[side] ??= [null, null];
  insert(node[side] as Node, rest, leaf);
}

const numbered = (node: Node): Node[] => [node, ...node.flatMap((child) => (Array.isArray(child) ? numbered(child) : []))];

function encode(field: Field): Buffer {
  if (typeof field === 'string') return Buffer.concat([control(2, Buffer.byteLength(field)), Buffer.from(field)]);
  if (typeof field === 'number') {
    const bytes = Buffer.alloc(8);
    bytes.writeDoubleBE(field);
    return Buffer.concat([control(3, 8), bytes]);
  }
  if (field instanceof Uint) {
    const bytes = Buffer.alloc(8);
    bytes.writeBigUInt64BE(BigInt(field.value));
    const short = bytes.subarray(bytes.findIndex((byte) => byte !== 0) % 8);
    return Buffer.concat([control(field.type, field.value === 0 ? 0 : short.length), field.value === 0 ? Buffer.alloc(0) : short]);
  }
  if (Array.isArray(field)) return Buffer.concat([control(11, field.length), ...field.map(encode)]);
  const members = Object.entries(field);
  return Buffer.concat([control(7, members.length), ...members.flatMap(([name, value]) => [encode(name), encode(value)])]);
}

/** Types above 7 stand in a byte of their own. */
function control(type: number, size: number): Buffer {
  const [low, more] = size < 29 ? [size, []] : [29, [size - 29]];
  return Buffer.from(type > 7 ? [low, type - 7, ...more] : [(type << 5) | low, ...more]);
}
