/** What stands at a path, with the values of its parameters as they were sent: nothing is percent-decoded. */
export interface Found<T> {
  target: T;
  params: Record<string, string>;
}

/** Finds targets by path. `{name}` in a path takes any one segment; a path without parameters wins over one with. */
export function createPaths<T>(targets: Map<string, T>): (path: string) => Found<T> | null {
  const fixed = new Map<string, Found<T>>();
  const shaped: { shape: RegExp; target: T }[] = [];
  for (const [path, target] of targets) {
    if (path.includes('{')) shaped.push({ shape: shapeOf(path), target });
    else fixed.set(path, { target, params: {} });
  }
  return (path) => {
    const known = fixed.get(path);
    if (known) return known;
    for (const { shape, target } of shaped) {
      const match = shape.exec(path);
      if (match) return { target, params: { ...match.groups } };
    }
    return null;
  };
}

/** Names of the parameters of a path. */
export const paramsOf = (path: string): string[] => [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name!);

const shapeOf = (path: string): RegExp => new RegExp(`^${path.replace(/[.*+?^$()|[\]\\]/g, '\\$&').replace(/\{(\w+)\}/g, '(?<$1>[^/]+)')}$`);
