import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import t from 'tap';

interface Locked {
  version: string;
  integrity?: string;
  resolved?: string;
  hasInstallScript?: boolean;
  os?: string[];
  cpu?: string[];
  libc?: string | string[];
}

const { packages } = JSON.parse(readFileSync(fileURLToPath(new URL('../../../package-lock.json', import.meta.url)), 'utf8')) as { packages: Record<string, Locked> };
const all = Object.entries(packages).filter(([path]) => path !== '');

/** Whether Linux on x64 with glibc, where this is run, would take it. */
const isForHere = ({ os, cpu, libc }: Locked): boolean => (os ?? ['linux']).includes('linux') && (cpu ?? ['x64']).includes('x64') && [libc ?? 'glibc'].flat().includes('glibc');

t.test('every package that Linux x64 installs has an integrity hash', (t) => {
  t.ok(all.length > 100, `${all.length} packages`);
  t.same(all.filter(([, locked]) => isForHere(locked) && !/^sha512-/.test(locked.integrity ?? '')).map(([path]) => path), []);
  t.end();
});

t.test('those without one are binaries for other platforms, of two packages', (t) => {
  const without = all.filter(([, { integrity }]) => integrity === undefined).map(([path]) => path);
  t.same(without.filter((path) => !/^node_modules\/(@node-rs\/bcrypt-|@uwsjs\/)/.test(path)), []);
  t.ok(without.length <= 24, `${without.length}: SECURITY.md tells of 24`);
  t.end();
});

t.test('no package comes from elsewhere than the registry, and those with an install script are known', (t) => {
  t.same(all.filter(([, { resolved }]) => resolved !== undefined && !resolved.startsWith('https://registry.npmjs.org/')).map(([path]) => path), []);
  t.same(all.filter(([, { hasInstallScript }]) => hasInstallScript).map(([path]) => path), ['node_modules/argon2']);
  t.end();
});
