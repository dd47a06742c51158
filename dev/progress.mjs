/**
 * What a person sees while things are prepared: one line per step with its
 * duration; on a terminal the running step moves, elsewhere only results print.
 */

/** @typedef {(line: string) => void} Say */
/**
 * `work` may tell what came of it; otherwise `doing` stands as the result.
 * @typedef {<T>(name: string, doing: string, work: (tell: (done: string, good?: boolean) => void) => Promise<T>) => Promise<T>} Step
 */

const FRAMES = '⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏';

/** @param {NodeJS.WriteStream} [out] */
export function createProgress(out = process.stdout) {
  const moving = out.isTTY === true && process.env.TERM !== 'dumb' && !process.env.CI;
  const colour = out.isTTY === true && !process.env.NO_COLOR;
  const paint = (/** @type {number} */ code, /** @type {string} */ text) => (colour ? `\x1b[${code}m${text}\x1b[0m` : text);
  let current = '';

  const draw = () => moving && out.write(current ? `\r\x1b[2K${current}` : '\r\x1b[2K');
  /** @type {Say} */
  const say = (line) => {
    if (moving && current) out.write('\r\x1b[2K');
    out.write(`${line}\n`);
    if (current) draw();
  };

  /** A line that stays at the bottom of a terminal until it is replaced; elsewhere nothing. */
  /** @type {Say} */
  const show = (line) => {
    current = line.slice(0, Math.max(20, (out.columns || 80) - 1));
    draw();
  };

  /** @type {Step} */
  const step = async (name, doing, work) => {
    const began = performance.now();
    const label = name.padEnd(10);
    const seconds = () => `${((performance.now() - began) / 1000).toFixed(1)} s`;
    let frame = 0;
    let done = doing;
    let isGood = true;
    const tick = () => {
      current = `${paint(36, /** @type {string} */ (FRAMES[frame++ % FRAMES.length]))} ${label} ${doing} ${paint(2, seconds())}`;
      draw();
    };
    // Without a terminal a long step still says now and then that it is alive.
    const timer = moving ? setInterval(tick, 100) : setInterval(() => say(`… ${label} ${doing} (${seconds()})`), 15_000);
    if (moving) tick();
    const finish = (/** @type {string} */ mark, /** @type {string} */ text) => {
      clearInterval(timer);
      if (moving) out.write('\r\x1b[2K');
      current = '';
      say(`${mark} ${label} ${text} ${paint(2, `(${seconds()})`)}`);
    };
    try {
      const result = await work((text, good = true) => {
        done = text;
        isGood = good;
      });
      finish(isGood ? paint(32, '✔') : paint(31, '✖'), done);
      return result;
    } catch (error) {
      finish(paint(31, '✖'), doing);
      throw error;
    }
  };

  return { say, step, show, paint };
}
