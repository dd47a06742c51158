import type { Row } from '../findings.js';
import { bar, foot, line, picture, scale, text } from './svg.js';

const [WIDTH, TOP, BAR, GAP] = [860, 58, 20, 10];
const [LEFT, RIGHT] = [250, 740];

export type Find = (scenario: string, id: string) => Row | null;

/** Scenario, row, label and colour. */
type Entry = [string, string, string, 'bare' | 'own' | 'peer'];

const PANELS: [string, Entry[]][] = [
  ['Logins per second', [
    ['login', 'verify', 'bare argon2 verifies', 'bare'],
    ['login', 'login', 'Portcullis login', 'own'],
    ['login', 'peer-login', 'better-auth sign-in', 'peer'],
  ]],
  ['Requests per second', [
    ['profile', 'route', 'empty uWebSockets.js route', 'bare'],
    ['profile', 'profile', 'Portcullis profile', 'own'],
    ['refresh', 'refresh', 'Portcullis refresh', 'own'],
    ['profile', 'peer-plain', 'better-auth get-session', 'peer'],
    ['profile', 'peer-joined', '… with experimental.joins', 'peer'],
    ['profile', 'peer-cached', '… with its cookie cache', 'peer'],
  ]],
];

/** What is done per second beside its bare limit and the peer; each panel has its own scale. */
export function ratesChart(find: Find, footer: string[]): string {
  const parts: string[] = [];
  let y = TOP;
  for (const [title, entries] of PANELS) {
    const known = entries.flatMap(([scenario, id, label, look]) => {
      const perSecond = find(scenario, id)?.perSecond;
      return perSecond ? [{ label, look, perSecond }] : [];
    });
    if (known.length === 0) continue;
    const place = scale(0, Math.max(...known.map(({ perSecond }) => perSecond.highest)), LEFT, RIGHT);
    parts.push(text(24, y + 14, 'small faint', title));
    y += 26;
    for (const { label, look, perSecond } of known) {
      const [middle, end] = [y + BAR / 2, Math.max(place(perSecond.highest), place(perSecond.median))];
      parts.push(text(LEFT - 12, middle + 4, 'end', label), bar(LEFT, y, place(perSecond.median) - LEFT, BAR, look));
      parts.push(line(place(perSecond.lowest), middle, place(perSecond.highest), middle, 'range'), text(end + 8, middle + 4, '', Math.round(perSecond.median).toLocaleString('en')));
      y += BAR + GAP;
    }
    y += 12;
  }
  return picture(WIDTH, y + 46, 'Throughput beside the bare limit and beside better-auth', [...parts, ...foot(y + 30, footer)]);
}
