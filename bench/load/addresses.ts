/** Programs that send load at a time: each has its own part of the addresses. */
export const PROGRAMS = 3;
/** 198.18.0.0/15, which RFC 2544 sets aside for benchmarks. */
const SIZE = 2 ** 17;

const nth = (n: number): string => `198.${18 + ((n >> 16) & 1)}.${(n >> 8) & 255}.${n & 255}`;

/** Where the owner of an account always comes from. */
export const homeOf = (account: number): string => nth(account % SIZE);

/** Addresses that no other call and no other program was given before, until all had their turn. */
export function freshAddresses(program: number): () => string {
  const part = Math.floor(SIZE / PROGRAMS);
  let given = 0;
  return () => nth(program * part + (given++ % part));
}
