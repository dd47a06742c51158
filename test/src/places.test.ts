import { copyFileSync, renameSync, writeFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import t, { type Test } from 'tap';
import { createLog } from '../../src/log.js';
import { openPlaces, readPlace, type Place, type Places } from '../../src/places.js';
import { mmdb, mmdbFile, type Networks } from '../support/mmdb.js';

const log = createLog('silent');
const NETWORKS: Networks = {
  '192.0.2.0/24': { country: 'DE', at: [52.520008, 13.404954] },
  '198.51.100.128/25': { country: 'FR' },
  '203.0.113.7/32': { at: [1, 2] },
  '2001:db8::/32': { country: 'JP', at: [35.68, 139.77] },
};

async function open(t: Test, settings: { geoipFile?: string; geoHeader?: string }, watchMs?: number): Promise<Places> {
  const places = await openPlaces({ geoipFile: null, geoHeader: null, ...settings }, log, watchMs);
  t.teardown(() => places.close());
  return places;
}

const call = (ip: string, headers: Record<string, string> = {}, viaProxy = true, twice = false) => ({ ip, viaProxy, headers: { get: (name: string) => headers[name], twice: () => twice } });
const de: Place = { country: 'DE', latitude: 52.52, longitude: 13.4 };

t.test('a file tells country and position of IPv4 and IPv6 addresses, and nothing of others', async (t) => {
  const places = await open(t, { geoipFile: mmdbFile(t, mmdb(NETWORKS)) });
  t.equal(places.isTelling, true);
  t.same(places.of(call('192.0.2.1')), de, 'to a hundredth of a degree');
  t.same(places.of(call('192.0.2.255')), de);
  t.same(places.of(call('198.51.100.200')), { country: 'FR', latitude: null, longitude: null }, 'a country without a position');
  t.same(places.of(call('2001:db8:1::1')), { country: 'JP', latitude: 35.68, longitude: 139.77 });
  for (const ip of ['198.51.100.1', '203.0.113.7', '127.0.0.1', '10.1.2.3', '192.168.0.1', 'fd00::1', '::1', '2001:db9::1', '0.0.0.0']) t.equal(places.of(call(ip)), null, ip);
});

t.test('an IPv6 address is not looked for in a file of IPv4 addresses', async (t) => {
  const places = await open(t, { geoipFile: mmdbFile(t, mmdb({ '32.1.13.0/24': { country: 'US' }, '192.0.2.0/24': { country: 'DE' } }, 4)) });
  t.match(places.of(call('192.0.2.1')), { country: 'DE' });
  t.match(places.of(call('32.1.13.184')), { country: 'US' });
  t.equal(places.of(call('2001:db8::1')), null, 'which begins with the same bits');
});

t.test('a file that cannot be used ends the start with its name and what is the matter', async (t) => {
  const good = mmdb(NETWORKS);
  const bad: [Buffer, RegExp][] = [
    [Buffer.alloc(0), /no MMDB database/],
    [Buffer.from('{"country":"DE"}'), /no MMDB database/],
    [good.subarray(0, good.length - 200), /no MMDB database, or its end is missing/],
    [good.subarray(good.lastIndexOf('MaxMind.com') - 3), /damaged/],
    [gzipSync(good), /packed by gzip/],
    [Buffer.concat([good.subarray(0, 200), Buffer.from('\xab\xcd\xefMaxMind.com', 'latin1')]), /cannot be used/],
  ];
  for (const [contents, problem] of bad) {
    const file = mmdbFile(t, contents);
    await t.rejects(openPlaces({ geoipFile: file, geoHeader: null }, log), { message: problem });
    await t.rejects(openPlaces({ geoipFile: file, geoHeader: null }, log), { message: `GEOIP_FILE ${file} cannot be used: ` });
  }
  await t.rejects(openPlaces({ geoipFile: '/no/such.mmdb', geoHeader: null }, log), { message: /GEOIP_FILE \/no\/such.mmdb cannot be used: ENOENT/ });
});

t.test('a damaged tree or entry leaves addresses untold and harms nobody', async (t) => {
  const whole = mmdb(NETWORKS);
  for (let at = 0; at < whole.length; at += 37) {
    const damaged = Buffer.from(whole);
    damaged[at] = damaged[at]! ^ 0xff;
    const places = await openPlaces({ geoipFile: mmdbFile(t, damaged), geoHeader: null }, log).catch(() => null);
    for (const ip of ['192.0.2.1', '2001:db8::1', '8.8.8.8']) t.doesNotThrow(() => places?.of(call(ip)));
    places?.close();
  }
});

t.test('a file that is replaced is taken, one that is broken leaves the former in use', async (t) => {
  const file = mmdbFile(t, mmdb({ '192.0.2.0/24': { country: 'DE' } }));
  const places = await open(t, { geoipFile: file }, 20);
  const comes = async (country: string): Promise<boolean> => {
    for (let tries = 0; tries < 1500 && places.of(call('192.0.2.1'))?.country !== country; tries += 1) await new Promise((resolve) => setTimeout(resolve, 20));
    return places.of(call('192.0.2.1'))?.country === country;
  };
  writeFileSync(`${file}.new`, mmdb({ '192.0.2.0/24': { country: 'AT' } }));
  renameSync(`${file}.new`, file);
  t.ok(await comes('AT'));
  writeFileSync(file, 'half of a file');
  await new Promise((resolve) => setTimeout(resolve, 100));
  t.match(places.of(call('192.0.2.1')), { country: 'AT' });
  writeFileSync(`${file}.new`, mmdb({ '192.0.2.0/24': { country: 'CH' } }));
  copyFileSync(`${file}.new`, file);
  t.ok(await comes('CH'), 'and the next good one is taken again');
});

t.test('a header is a country, with or without a position; anything else is nothing', (t) => {
  t.same(readPlace('DE'), { country: 'DE', latitude: null, longitude: null });
  t.same(readPlace('de;52.520008,13.404954'), de);
  t.same(readPlace('US; -33.5, -151'), { country: 'US', latitude: -33.5, longitude: -151 });
  for (const text of ['', 'XX', 'ZZ', 'T1', 'DEU', 'D', 'DE;', 'DE;52', 'DE;52,13,1', 'DE;91,0', 'DE;0,181', 'DE;1e1,2', 'DE;NaN,1', 'DE;52.5', 'DE, FR', 'DE\u00a0', `DE;1.${'0'.repeat(5000)},1`, "D'"]) t.equal(readPlace(text), null, text.slice(0, 20));
  t.end();
});

t.test('a header counts from trusted proxies alone, once, and only for what the file does not know', async (t) => {
  const header = { 'cf-ipcountry': 'NL' };
  const alone = await open(t, { geoHeader: 'cf-ipcountry' });
  t.equal(alone.isTelling, true);
  t.match(alone.of(call('192.0.2.1', header)), { country: 'NL' });
  t.equal(alone.of(call('192.0.2.1', header, false)), null, 'not from the client itself');
  t.equal(alone.of(call('192.0.2.1', header, true, true)), null, 'not when it was sent twice');
  t.equal(alone.of(call('192.0.2.1')), null);
  const both = await open(t, { geoHeader: 'cf-ipcountry', geoipFile: mmdbFile(t, mmdb(NETWORKS)) });
  t.match(both.of(call('192.0.2.1', header)), { country: 'DE' });
  t.match(both.of(call('192.168.0.1', header)), { country: 'NL' });
  const neither = await open(t, {});
  t.equal(neither.isTelling, false);
  t.equal(neither.of(call('192.0.2.1', header)), null);
});
