import t from 'tap';
import { kmBetween, risksOf } from '../../../src/auth/risk.js';
import type { Place } from '../../../src/places.js';
import type { SeenPlace } from '../../../src/store/login-accounts.js';

const BERLIN: Place = { country: 'DE', latitude: 52.52, longitude: 13.4 };
const PARIS: Place = { country: 'FR', latitude: 48.86, longitude: 2.35 };
const HOUR = 3_600_000;

const known = { seenBefore: true, knownNetwork: true, knownDevice: true };
const seen = (place: Place, hours: number): SeenPlace => ({ ...place, msAgo: hours * HOUR });
const risks = (place: Place | null, ...places: SeenPlace[]): string[] => risksOf({ ...known, places }, place);

t.test('distances are those along the surface', (t) => {
  t.equal(kmBetween([52.52, 13.4], [52.52, 13.4]), 0);
  t.ok(Math.abs(kmBetween([52.52, 13.4], [48.86, 2.35]) - 878) < 5, 'Berlin to Paris');
  t.ok(Math.abs(kmBetween([40.71, -74.01], [35.68, 139.77]) - 10_850) < 50, 'New York to Tokyo');
  t.ok(Math.abs(kmBetween([0, 179.9], [0, -179.9]) - 22) < 1, 'across the date line');
  t.ok(Math.abs(kmBetween([90, 0], [-90, 77]) - 20_015) < 5, 'from pole to pole');
  t.end();
});

t.test('a journey is impossible above 900 km/h, over more than 300 km', (t) => {
  const speed = kmBetween([52.52, 13.4], [48.86, 2.35]);
  t.same(risks(PARIS, seen(BERLIN, (speed / 900) * 0.99), seen(PARIS, 500)), ['impossible_travel']);
  t.same(risks(PARIS, seen(BERLIN, (speed / 900) * 1.01), seen(PARIS, 500)), []);
  t.same(risks(PARIS, seen(BERLIN, 0), seen(PARIS, 500)), ['impossible_travel'], 'both at once');
  const near = (km: number): Place => ({ ...BERLIN, latitude: 52.52 + (km * 360) / (2 * Math.PI * 6371) });
  t.same(risks(near(299), seen(BERLIN, 0)), []);
  t.same(risks(near(301), seen(BERLIN, 0)), ['impossible_travel']);
  t.same(risks(near(301), seen(BERLIN, 0.34)), []);
  t.end();
});

t.test('a journey is reckoned from wherever the account was seen last in each country', (t) => {
  const tokyo: Place = { country: 'JP', latitude: 35.68, longitude: 139.77 };
  t.same(risks(BERLIN, seen(BERLIN, 0.1), seen(tokyo, 1)), ['impossible_travel']);
  t.same(risks(BERLIN, seen(BERLIN, 0.1), seen(tokyo, 12)), []);
  t.end();
});

t.test('a country is new when the account was seen in others before, and only in others', (t) => {
  t.same(risks(PARIS, seen(BERLIN, 1000)), ['new_country']);
  t.same(risks(PARIS, seen(BERLIN, 1000), seen(PARIS, 2000)), []);
  t.same(risks(PARIS), [], 'the first place that is told at all');
  t.same(risks(PARIS, seen(BERLIN, 0.1)), ['new_country', 'impossible_travel']);
  t.end();
});

t.test('without a place, or without a position, there is nothing to reckon', (t) => {
  const nowhere: Place = { country: 'FR', latitude: null, longitude: null };
  t.same(risks(null, seen(BERLIN, 0)), []);
  t.same(risks(nowhere, seen(BERLIN, 0)), ['new_country']);
  t.same(risks(PARIS, seen(nowhere, 0), seen(BERLIN, 500)), []);
  t.end();
});

t.test('network and device are told apart, and a first login has nothing to differ from', (t) => {
  const of = (account: Partial<typeof known>) => risksOf({ ...known, ...account, places: [] }, PARIS);
  t.same(of({ knownNetwork: false }), ['new_network']);
  t.same(of({ knownDevice: false }), ['new_device']);
  t.same(of({ knownNetwork: false, knownDevice: false }), ['new_network', 'new_device']);
  t.same(risksOf({ seenBefore: false, knownNetwork: false, knownDevice: false, places: [seen(BERLIN, 0)] }, PARIS), []);
  t.end();
});
