/** A small SVG writer: elements as text, and the look that all charts share, on light and on dark pages. */

export type Attributes = Record<string, string | number>;

export const escape = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');

export function element(name: string, attributes: Attributes, content = ''): string {
  const list = Object.entries(attributes).map(([key, value]) => ` ${key}="${typeof value === 'number' ? Number(value.toFixed(2)) : escape(value)}"`);
  return content === '' ? `<${name}${list.join('')}/>` : `<${name}${list.join('')}>${content}</${name}>`;
}

/** `look` is one or more of the classes of STYLE. */
export const text = (x: number, y: number, look: string, content: string): string => element('text', { x, y, class: look }, escape(content));
export const line = (x1: number, y1: number, x2: number, y2: number, look: string): string => element('line', { x1, y1, x2, y2, class: look });
export const bar = (x: number, y: number, width: number, height: number, look: string): string => element('rect', { x, y, width: Math.max(width, 1), height, rx: 2, class: look });
export const dot = (cx: number, cy: number, look: string): string => element('circle', { cx, cy, r: 5, class: look });
/** Stands on its corner, so that it differs from a dot without its colour. */
export const diamond = (x: number, y: number, look: string): string => element('path', { d: `M${x.toFixed(2)} ${y - 7}l7 7l-7 7l-7 -7z`, class: look });

const LIGHT = { page: '#ffffff', ink: '#1f2328', faint: '#59636e', grid: '#d1d9e0', own: '#0969da', bare: '#8c959f', peer: '#bc6c00', good: '#1a7f37', bad: '#cf222e' };
const DARK: typeof LIGHT = { page: '#0d1117', ink: '#f0f6fc', faint: '#9198a1', grid: '#3d444d', own: '#4493f8', bare: '#656c76', peer: '#d29922', good: '#3fb950', bad: '#f85149' };

const variables = (colours: typeof LIGHT): string => Object.entries(colours).map(([name, colour]) => `--${name}:${colour}`).join(';');
const fills = Object.keys(LIGHT).map((name) => `.${name}{fill:var(--${name})}`).join('');
const STYLE = [
  `:root{${variables(LIGHT)}}`,
  `@media (prefers-color-scheme:dark){:root{${variables(DARK)}}}`,
  'text{font:13px system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif;fill:var(--ink)}',
  '.title{font-size:17px;font-weight:600}.small{font-size:11.5px}.end{text-anchor:end}.middle{text-anchor:middle}',
  fills,
  'line{stroke:var(--grid);stroke-width:1}.mark{stroke:var(--ink);stroke-width:2}.range{stroke:var(--ink);stroke-width:1.5}',
  '.own-line{stroke:var(--own);stroke-width:6;stroke-linecap:round}.good-line{stroke:var(--good);stroke-width:2.5}.bad-line{stroke:var(--bad);stroke-width:2.5}',
].join('\n');

/** Small lines at the foot, the last at `y`. */
export const foot = (y: number, lines: string[]): string[] => lines.map((one, n) => text(24, y - (lines.length - 1 - n) * 16, 'small faint', one));

/** A whole picture; `title` is also what a screen reader says. */
export function picture(width: number, height: number, title: string, parts: string[]): string {
  const frame = element('rect', { width, height, rx: 6, class: 'page' });
  const head = text(24, 34, 'title', title);
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img">\n<title>${escape(title)}</title>\n<style>\n${STYLE}\n</style>\n${[frame, head, ...parts].join('\n')}\n</svg>\n`;
}

/** A place on an axis for a value; what lies beyond its ends stays at them. */
export const scale = (from: number, to: number, left: number, right: number, shape: (value: number) => number = (value) => value): ((value: number) => number) => {
  const [low, high] = [shape(from), shape(to)];
  return (value) => left + ((shape(Math.min(to, Math.max(from, value))) - low) / (high - low)) * (right - left);
};
