import t from 'tap';
import { cli } from '../../support/cli.js';

t.test('docs compares the generated documents with the code, and needs no settings', async (t) => {
  t.match(await cli({})('docs'), { code: 0, out: 'the documents are up to date\n', err: '' });
  t.strictSame(JSON.parse((await cli({})('docs', '--json')).out), { written: [] });
});
