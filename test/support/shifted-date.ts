// Loaded before the service by `--import`: its Date is that of a machine whose clock is off by CLOCK_SHIFT_MS, or by
// what the file CLOCK_SHIFT_FILE says at the time. Timers and performance.now() go on, as they do when a clock is stepped.
import { readFileSync } from 'node:fs';

const True = Date;
const file = process.env['CLOCK_SHIFT_FILE'];
let shiftMs = Number(process.env['CLOCK_SHIFT_MS'] ?? 0);
const look = (): void => {
  const said = Number(readFileSync(file!, 'utf8'));
  if (!Number.isNaN(said)) shiftMs = said;
};
if (file !== undefined) {
  look();
  setInterval(look, 20).unref();
}
const now = (): number => True.now() + shiftMs;

globalThis.Date = new Proxy(True, {
  apply: () => new True(now()).toString(),
  construct: (target, given: unknown[], made) => Reflect.construct(target, given.length === 0 ? [now()] : given, made) as object,
  get: (target, name, receiver) => (name === 'now' ? now : (Reflect.get(target, name, receiver) as unknown)),
});
