import ipaddr from 'ipaddr.js';
import { clusterAddress } from '../redis-url.js';

/** Turns a setting's text into its value; throws an Error whose message says what was expected. */
export type Reader<T> = (text: string) => T;

/** n events per window; null turns the limit off. */
export type Limit = { max: number; windowMs: number } | null;

export type Cidr = [ipaddr.IPv4 | ipaddr.IPv6, number];

function number(text: string, min: number, max: number): number {
  const value = Number(text);
  if (text.trim() === '' || !Number.isFinite(value) || value < min || value > max) {
    throw new Error(`a number from ${min} to ${max}`);
  }
  return value;
}

export const int =
  (min: number, max: number): Reader<number> =>
  (text) => {
    const value = number(text, min, max);
    if (!Number.isInteger(value)) throw new Error(`a whole number from ${min} to ${max}`);
    return value;
  };

export const real =
  (min: number, max: number): Reader<number> =>
  (text) =>
    number(text, min, max);

export const reals =
  (min: number, max: number): Reader<number[]> =>
  (text) =>
    text.split(',').map((part) => number(part, min, max));

export const string: Reader<string> = (text) => text;

export const optional =
  <T>(read: Reader<T>): Reader<T | null> =>
  (text) =>
    text === '' ? null : read(text);

export const oneOf =
  <const T extends string>(...values: T[]): Reader<T> =>
  (text) => {
    if (!(values as string[]).includes(text)) throw new Error(`one of ${values.join(', ')}`);
    return text as T;
  };

export const flag: Reader<boolean> = (text) => {
  if (text !== '0' && text !== '1') throw new Error('0 or 1');
  return text === '1';
};

export const list: Reader<string[]> = (text) =>
  text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '');

export const url =
  (...protocols: string[]): Reader<string> =>
  (text) => {
    const parsed = URL.canParse(text) ? new URL(text) : null;
    if (!parsed || !protocols.includes(parsed.protocol) || parsed.hostname === '') {
      throw new Error(`a URL that starts with ${protocols.map((p) => `${p}//`).join(' or ')} and a host`);
    }
    return text;
  };

/** A URL that paths are put behind; it comes without a slash at its end. Short, since mails cut long links off. */
export const baseUrl: Reader<string> = (text) => {
  const read = url('http:', 'https:')(text);
  if (/[?#\s@]/.test(read) || read.length > 120) throw new Error('a URL of 120 characters at most that starts with http:// or https://, without a user, ? and #');
  return read.replace(/\/+$/, '');
};

/** Without the name of a database every statement would fail, and only then. */
export const mysqlUrl: Reader<string> = (text) => {
  const read = url('mysql:')(text);
  if (!/^\/[^/]+$/.test(new URL(read).pathname)) throw new Error('a URL that ends with the name of a database, mysql://user:password@host:port/database');
  return read;
};

/** One server, or some nodes of a cluster that name all others. */
export const redisUrl: Reader<string> = (text) => {
  if (!/^rediss?\+cluster:/.test(text)) return url('redis:', 'rediss:')(text);
  if (!clusterAddress(text)) throw new Error('a URL such as redis+cluster://user:password@host:port,host:port (a cluster has database 0 alone)');
  return text;
};

/** A host name, with or without a dot in front. */
export const domain: Reader<string> = (text) => {
  if (!/^\.?[a-z0-9-]+(\.[a-z0-9-]+)*$/i.test(text)) throw new Error('a domain such as example.com');
  return text;
};

export const origins: Reader<string[]> = (text) =>
  list(text).map((origin) => {
    if (!URL.canParse(origin) || new URL(origin).origin !== origin) {
      throw new Error('origins such as https://app.example.com, without a path, comma-separated');
    }
    return origin;
  });

/** What browsers would run, or show as a page of nobody. */
const SCRIPT_SCHEMES = ['javascript:', 'data:', 'vbscript:', 'blob:', 'about:', 'file:'];

/** URIs that are compared byte for byte and written into headers: absolute, in plain ASCII, without a fragment. */
export const redirectUris: Reader<string[]> = (text) =>
  list(text).map((uri) => {
    if (!/^[\x21-\x7e]+$/.test(uri) || uri.includes('#') || !URL.canParse(uri) || SCRIPT_SCHEMES.includes(new URL(uri).protocol)) {
      throw new Error('absolute URIs in ASCII such as https://app.example.com/signed-in, without a fragment, comma-separated');
    }
    return uri;
  });

/** base64 or base64url of at least 32 bytes. What is neither is refused: Buffer would drop it and read the rest. */
export const secret: Reader<Buffer> = (text) => {
  const bytes = /^[A-Za-z0-9+/_-]+={0,2}$/.test(text) ? Buffer.from(text, 'base64') : Buffer.alloc(0);
  if (bytes.length < 32) throw new Error('at least 32 random bytes in base64, such as `openssl rand -base64 32` prints');
  return bytes;
};

/** `n/seconds`, or `0` for no limit. */
export const limit: Reader<Limit> = (text) => {
  if (text === '0') return null;
  const [, max, seconds] = /^(\d{1,6})\/(\d{1,6}(?:\.\d{1,3})?)$/.exec(text) ?? [];
  if (max === undefined || seconds === undefined || Number(max) < 1 || Number(seconds) <= 0) {
    throw new Error('n/seconds such as 3/300, or 0 for no limit');
  }
  return { max: Number(max), windowMs: Number(seconds) * 1000 };
};

export const cidrs: Reader<Cidr[]> = (text) =>
  list(text).map((range) => {
    try {
      return range.includes('/') ? ipaddr.parseCIDR(range) : single(range);
    } catch {
      throw new Error('addresses or CIDR ranges, comma-separated');
    }
  });

function single(address: string): Cidr {
  const parsed = ipaddr.parse(address);
  return [parsed, parsed.kind() === 'ipv4' ? 32 : 128];
}

/** A header's name, in lower case as requests are read. */
export const headerName: Reader<string> = (text) => {
  if (!/^[A-Za-z0-9-]{1,64}$/.test(text)) throw new Error('the name of a header, of letters, digits and -');
  return text.toLowerCase();
};

/** `name:required` or `name:advisory`, comma-separated. */
export const validators: Reader<{ source: string; required: boolean }[]> = (text) =>
  list(text).map((part) => {
    const [, source, kind] = /^([\w-]{1,64}):(required|advisory)$/.exec(part) ?? [];
    if (source === undefined) throw new Error('name:required or name:advisory, comma-separated');
    return { source, required: kind === 'required' };
  });
