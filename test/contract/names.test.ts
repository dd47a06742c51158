import t from 'tap';
import { basename } from 'node:path';
import { filesBelow, textOf } from './imports.js';

const BANNED = /(^|[-.])(utils?|helpers?|commons?|misc|managers?|services?|process(es)?)([-.]|$)/i;
/** `npm run up` runs servers, which are called what they are called. */
const SPARED = new Set(['dev/services.mjs']);
const LONGEST = 300;

const folders = ['src', 'workers', 'lua', 'migrations', 'test', 'dev', 'docs', 'bench'].filter((folder) => {
  try {
    return filesBelow(folder, '').length > 0;
  } catch {
    return false;
  }
});
const files = folders.flatMap((folder) => filesBelow(folder, '')).filter((file) => !file.includes('node_modules'));

t.test('a file is named for what it holds, never util, helper, common, misc, manager, service or process', (t) => {
  t.ok(files.length > 80);
  t.same(files.filter((file) => BANNED.test(basename(file)) && !SPARED.has(file)), []);
  for (const name of ['util.ts', 'string-utils.ts', 'helpers.mjs', 'user-service.ts', 'process.ts', 'common.ts', 'misc.lua']) t.match(name, BANNED);
  for (const name of ['users.ts', 'processor-time.ts', 'commonest-passwords.ts', 'serviceable.md']) t.notMatch(name, BANNED);
  t.end();
});

t.test(`a source file is shorter than ${LONGEST} lines`, (t) => {
  const sources = files.filter((file) => /^(src|workers|lua|test|dev)\/.*\.(ts|mjs|lua)$/.test(file));
  t.same(sources.map((file) => [file, textOf(file).split('\n').length] as const).filter(([, lines]) => lines > LONGEST), []);
  t.end();
});
