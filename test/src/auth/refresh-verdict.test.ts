import t from 'tap';
import { judge, judgeFormer } from '../../../src/auth/refresh-verdict.js';
import type { RefreshState } from '../../../src/store/sessions.js';

const hash = Buffer.alloc(32, 1);
const alive: RefreshState = {
  id: 's', generation: 7, secretHash: hash, successorSeal: null, rotatedMsAgo: 0, revoked: false, deleted: false, expired: false,
  userId: 'u', user: { active: true, roles: [] }, amr: ['pwd'], authTime: new Date(0), leftMs: 1000, askedAt: 0, readAt: 0,
};

t.test('the first thing in the documented order is told', (t) => {
  const ended: RefreshState = { ...alive, secretHash: Buffer.alloc(32, 2), deleted: true, revoked: true, expired: true, user: null };
  t.equal(judge(null, hash), 'REFRESH_SESSION_NOT_FOUND');
  t.equal(judge(ended, hash), 'REFRESH_TOKEN_INVALID');
  const told: Partial<RefreshState>[] = [{ secretHash: hash }, { deleted: false }, { revoked: false }, { expired: false }, { user: { active: false, roles: [] } }, { user: { active: true, roles: [] } }];
  const codes = told.map((_, i) => judge(Object.assign({}, ended, ...told.slice(0, i + 1)) as RefreshState, hash));
  t.same(codes, ['REFRESH_SESSION_DELETED', 'REFRESH_SESSION_REVOKED', 'REFRESH_SESSION_EXPIRED', 'REFRESH_USER_NOT_FOUND', 'REFRESH_USER_INACTIVE', null]);
  t.end();
});

t.test('what a token that is not the newest deserves', (t) => {
  const verdict = (generation: number, age: number, more: { doubt?: number; wasNewest?: boolean; grace?: number } = {}): string =>
    judgeFormer(alive, { generation }, { earliest: age, latest: age + (more.doubt ?? 0), wasNewest: more.wasNewest ?? false }, more.grace ?? 0);
  t.equal(verdict(6, -1), 'successor', 'under way when the newest rotation happened');
  t.equal(verdict(6, 0.5), 'forgiven');
  t.equal(verdict(6, 2000), 'forgiven');
  t.equal(verdict(6, 2000.5), 'reuse');
  t.equal(verdict(6, 900, { grace: 1000 }), 'successor');
  t.equal(verdict(6, 1100, { grace: 1000 }), 'forgiven');
  t.equal(verdict(5, -1), 'reuse', 'under way at the newest rotation, but replaced before it');
  t.equal(verdict(5, -1, { grace: 60_000 }), 'reuse');
  t.equal(verdict(6, 5000, { wasNewest: true }), 'successor', 'slow, not late');
  t.equal(verdict(3, 5000, { wasNewest: true }), 'forgiven', 'slow, and overtaken more than once');
  for (const generation of [7, 8, 4_000_000_000]) t.equal(verdict(generation, 5000), 'unknown');
  t.equal(verdict(6, -1, { doubt: 2 }), 'forgiven', 'perhaps under way is not enough for the successor');
  t.equal(verdict(6, 1999, { doubt: 500 }), 'forgiven', 'perhaps late is not enough to end a session');
  t.end();
});
