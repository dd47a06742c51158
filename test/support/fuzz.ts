import fc, { type Arbitrary } from 'fast-check';
import type { Test } from 'tap';
import { scaled } from './figures.js';

/** FUZZ_SEED=n repeats a run; a failure prints its own. */
const SEED = process.env['FUZZ_SEED'];

/**
 * Asserts that something holds for generated inputs; the smallest counterexample is printed with the seed of the run.
 * @returns how many were tried, 0 when it does not hold
 */
export function holds<T>(t: Test, rule: string, inputs: Arbitrary<T>, isSo: (input: T) => boolean, size: { quick: number; full: number } = { quick: 200, full: 20_000 }): number {
  const details = fc.check(fc.property(inputs, isSo), { numRuns: scaled(size.quick, size.full), ...(SEED === undefined ? {} : { seed: Number(SEED) }) });
  t.equal(details.failed ? fc.defaultReportMessage(details) : undefined, undefined, rule);
  return details.failed ? 0 : details.numRuns;
}

/** The same for work that is awaited. */
export async function holdsLater<T>(t: Test, rule: string, inputs: Arbitrary<T>, isSo: (input: T) => Promise<boolean>, size: { quick: number; full: number } = { quick: 100, full: 3_000 }): Promise<number> {
  const details = await fc.check(fc.asyncProperty(inputs, isSo), { numRuns: scaled(size.quick, size.full), ...(SEED === undefined ? {} : { seed: Number(SEED) }) });
  t.equal(details.failed ? fc.defaultReportMessage(details) : undefined, undefined, rule);
  return details.failed ? 0 : details.numRuns;
}

/** What work throws, or undefined when it does not. */
export function thrown(work: () => unknown): unknown {
  try {
    work();
    return undefined;
  } catch (error) {
    return error;
  }
}

/** Any text: plain, of binary characters, with half characters. */
export const anyText: Arbitrary<string> = fc.oneof(fc.string(), fc.string({ unit: 'binary' }), fc.string({ unit: fc.nat(0xffff).map((code) => String.fromCharCode(code)) }));

/** Text in which pieces that mean something to a reader stand in any order. */
export const textOf = (...pieces: string[]): Arbitrary<string> => fc.array(fc.oneof({ weight: 4, arbitrary: fc.constantFrom(...pieces) }, { weight: 1, arbitrary: fc.string({ maxLength: 5 }) }), { maxLength: 12 }).map((parts) => parts.join(''));

/** A text with one place changed, cut out or doubled. */
export const mutantOf = (text: Arbitrary<string>, letters = fc.string({ minLength: 1, maxLength: 1, unit: 'binary' })): Arbitrary<{ text: string; mutant: string }> =>
  fc.tuple(text, fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }), letters, fc.constantFrom('replace', 'insert', 'remove', 'double')).map(([original, where, letter, how]) => {
    const at = Math.floor(where * original.length);
    const [before, here, after] = [original.slice(0, at), original.slice(at, at + 1), original.slice(at + 1)];
    const middle = { replace: letter, insert: letter + here, remove: '', double: here + here }[how];
    return { text: original, mutant: before + middle + after };
  });

/** The least time that work takes, in ms: what took longer was another's work on the same core. */
export function leastMs(work: () => unknown, times = 5): number {
  let least = Infinity;
  for (let i = 0; i < times; i += 1) {
    const started = performance.now();
    work();
    least = Math.min(least, performance.now() - started);
  }
  return least;
}
