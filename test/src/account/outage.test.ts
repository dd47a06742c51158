import { setTimeout as sleep } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { startApp } from '../../support/app.js';
import type { Answer } from '../../support/client.js';
import { openInbox } from '../../support/inbox.js';
import { signedIn, stored, type Owner } from '../../support/owner.js';
import { atMost } from '../../support/patience.js';
import { ownRedis } from '../../support/stores.js';

const inbox = openInbox(t);

/** Calls every account endpoint, and gives the replies without what names the request. */
async function callAll(t: Test, service: Awaited<ReturnType<typeof startApp>>, owner: Owner, within: number): Promise<void> {
  const timed = async (send: () => Promise<Answer>): Promise<Answer> => {
    const started = performance.now();
    const answer = await send();
    t.ok(performance.now() - started < within, `${Math.round(performance.now() - started)} ms`);
    return answer;
  };
  const anonymous = (path: string, email: string) => () => service.client().request('POST', `/api/auth/account/${path}`, { body: { email, otp: '00000000' } });
  const post = (path: string, body: object) => () => owner.client.request('POST', `/api/auth/${path}`, { headers: owner.bearer, body });
  const password = 'a password of my own';
  for (const send of [
    ...['known@example.com', 'unknown@example.com'].flatMap((email) => [post('register', { email, password }), post('email/resend', { email }), post('password/forgot', { email })]),
    post('password/reset', { token: 'x', password }),
    post('password/change', { currentPassword: owner.password, newPassword: password }),
    () => owner.requestDeletion(),
    () => owner.delete('00000000'),
    anonymous('restore-request', 'known@example.com'),
    anonymous('restore-request', 'unknown@example.com'),
    anonymous('restore', 'known@example.com'),
    anonymous('restore', 'unknown@example.com'),
  ]) {
    const { status, body } = await timed(send);
    const { requestId: _id, ...rest } = body;
    t.same([status, rest], [503, { status: 503, title: 'A part of the service is down.', code: 'UNAVAILABLE', retryAfter: 1 }]);
  }
}

t.test('without Redis every account endpoint is unavailable, the same for known and unknown, and back by itself', async (t) => {
  const service = await startApp(t, inbox.settings);
  const owner = await signedIn(service, inbox);
  await service.account({ email: 'known@example.com', deletedAt: new Date() });
  process.kill(service.redis.pid, 'SIGSTOP');
  await callAll(t, service, owner, atMost(1500));
  process.kill(service.redis.pid, 'SIGCONT');
  await sleep(100);
  await service.redis.stop('SIGKILL');
  await sleep(50);
  await callAll(t, service, owner, atMost(250));
  t.equal((await stored(service.app.needs.mysql, owner.id)).deletedAt, null);

  await ownRedis(t, [], service.redis.port);
  const away = performance.now();
  while ((await owner.requestDeletion()).status !== 204) {
    if (performance.now() - away > atMost(5000)) throw new Error('not back in time');
    await sleep(50);
  }
  const { otp } = (await inbox.nth(owner.email, 'account_deletion_requested')).data;
  t.equal((await owner.delete(otp)).status, 200);
});

t.test('a Redis that forgets the scripts is told them again', async (t) => {
  const service = await startApp(t, inbox.settings);
  const owner = await signedIn(service, inbox);
  await service.app.needs.redis.script('FLUSH');
  const code = await owner.deletionCode();
  await service.app.needs.redis.script('FLUSH');
  t.equal((await owner.delete(code)).status, 200);
});
