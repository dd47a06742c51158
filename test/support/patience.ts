/** What some work gave, and how long it took, in ms. */
export async function timed<T>(work: () => Promise<T>): Promise<{ value: T; ms: number }> {
  const started = performance.now();
  const value = await work();
  return { value, ms: performance.now() - started };
}

/** Asks again and again until the answer is right; gives how long that took, in ms, and fails after `mostMs`. */
export async function until(isRight: () => Promise<boolean>, mostMs: number): Promise<number> {
  const started = performance.now();
  while (!(await isRight())) {
    if (performance.now() - started > mostMs) throw new Error(`not within ${mostMs} ms`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return performance.now() - started;
}
