import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import t from 'tap';
import { createLog } from '../../../src/log.js';
import { createBreachCheck } from '../../../src/passwords/breaches.js';
import { atMost } from '../../support/patience.js';
import { freePort, type Teardown } from '../../support/stores.js';

const PASSWORD = 'correct horse battery staple';
const DIGEST = createHash('sha1').update(PASSWORD).digest('hex').toUpperCase();

/** A range service; gives the setting and the requests it saw. */
async function rangeService(t: Teardown, answer: (response: ServerResponse) => void): Promise<{ url: string; seen: IncomingMessage[] }> {
  const seen: IncomingMessage[] = [];
  const server = createServer((request, response) => {
    seen.push(request);
    answer(response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    server.close();
    server.closeAllConnections();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/range`, seen };
}

const check = (breachRangeUrl: string | null) => createBreachCheck({ breachRangeUrl }, createLog('silent'))(PASSWORD);

const OTHERS = ['0018A45C4D1DEF81644B54AB7F969B88D65:3', 'FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF:0'];

t.test('five characters of the SHA-1 are told, padding is asked for, and the suffix is found in the answer', async (t) => {
  const { url, seen } = await rangeService(t, (response) => response.end([...OTHERS, `${DIGEST.slice(5)}:42`].join('\r\n')));
  t.equal(await check(url), true);
  t.equal(await check(`${url}/`), true);
  for (const request of seen) {
    t.equal(request.url, `/range/${DIGEST.slice(0, 5)}`);
    t.equal(request.headers['add-padding'], 'true');
  }
});

t.test('a suffix that is not there, or only as padding, is no breach', async (t) => {
  for (const lines of [OTHERS, [`${DIGEST.slice(5)}:0`], [`X${DIGEST.slice(5)}:7`], [DIGEST.slice(5)], ['']]) {
    const { url } = await rangeService(t, (response) => response.end(lines.join('\r\n')));
    t.equal(await check(url), false, lines.join());
  }
});

t.test('nothing is asked when nobody is set', async (t) => t.equal(await check(null), false));

t.test('a password passes when the service is down, fails, redirects or hangs, within a second', async (t) => {
  const line = `${DIGEST.slice(5)}:42`;
  const odd: ((response: ServerResponse) => void)[] = [
    (response) => response.writeHead(503).end(line),
    (response) => response.writeHead(302, { location: 'http://127.0.0.1:1/' }).end(line),
    (response) => response.destroy(),
    () => undefined,
    (response) => void response.write('0018A45C4D1DEF81644B54AB7F969B88D65:3\r\n'),
  ];
  const urls = [`http://127.0.0.1:${await freePort()}/`, ...(await Promise.all(odd.map((answer) => rangeService(t, answer)))).map(({ url }) => url)];
  const started = performance.now();
  t.same(await Promise.all(urls.map((url) => check(url))), urls.map(() => false));
  t.ok(performance.now() - started < atMost(1500));
});
