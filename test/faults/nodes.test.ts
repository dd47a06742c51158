import t from 'tap';
import { figure } from '../support/figures.js';
import { startNodes } from '../support/nodes.js';

t.test('a session opened on one node is known and ended on every other', async (t) => {
  const { nodes, account } = await startNodes(t, 3);
  const { email, password } = await account();
  const tokens = (await nodes[0]!.client().login(email, password)).body;
  const token = tokens['accessToken'] as string;
  for (const node of nodes) t.match(await node.client().profile(token), { status: 200, body: { email } });

  await nodes[1]!.client().request('POST', '/api/auth/logout', { headers: { authorization: `Bearer ${token}` } });

  let accepted = 0;
  for (const node of nodes) {
    const read = await node.client().profile(token);
    t.match(read, { status: 401, body: { code: 'UNAUTHENTICATED' } });
    if (read.status === 200) accepted += 1;
    t.match(await node.client().refresh(tokens['refreshToken']), { status: 401, body: { code: 'REFRESH_SESSION_REVOKED' } });
  }
  figure(t, 'T21', { did: 'logout on one of 3 nodes, at once profile on each', figure: `${accepted} of ${nodes.length} accepted it`, ok: accepted === 0 });
});

t.test('a node that is told to stop ends by itself with code 0', async (t) => {
  const { nodes } = await startNodes(t, 1);
  t.equal(await nodes[0]!.stop(), 0);
});
