import { v7 as uuid } from 'uuid';
import { mintRefreshToken, newSecret } from '../../src/auth/refresh-token.js';
import { createKeyring, sha256 } from '../../src/keyring.js';
import { userIdOf, withConnection } from '../database.js';
import { freshAddresses } from './addresses.js';
import type { LoadTarget } from './job.js';
import { JSON_HEADERS, openWire, type Request } from './wire.js';

/** A session that nobody has refreshed yet. */
export interface OpenSession {
  refreshToken: string;
  /** Where its refreshes come from. */
  address: string;
}

export interface Sessions {
  /**
   * Opens sessions as logins leave them, but at the speed of inserts: a login each would take minutes.
   * As many share an address as its limit allows when each is used `usesEach` times.
   */
  open(target: LoadTarget, count: number, usesEach: number): Promise<OpenSession[]>;
  /** Access tokens of so many new sessions, by one refresh each. */
  accessTokens(target: LoadTarget, count: number): Promise<string[]>;
}

/** Rows per insert. */
const BATCH = 1_000;
const DAY_MS = 24 * 3600 * 1000;
/** Refreshes in flight while access tokens are fetched. */
const AT_ONCE = 32;
/** A prime: steps of it come by every account before the first again, and neighbours lie far apart. */
const STRIDE = 611_953;

/** An account for each number, spread over all of them. */
export const spread = (n: number, accounts: number): number => (n * STRIDE) % accounts;

export function createSessions(program: number): Sessions {
  const nextAddress = freshAddresses(program);
  let made = 0;

  async function open({ accounts, sessions }: LoadTarget, count: number, usesEach: number): Promise<OpenSession[]> {
    if (!sessions) throw new Error('sessions cannot be opened there');
    const keyring = createKeyring(Buffer.from(sessions.secretKey, 'base64'), null);
    const until = new Date(Date.now() + DAY_MS);
    const opened: OpenSession[] = [];
    let [address, left] = ['', 0];
    const row = (): unknown[] => {
      const [id, secret] = [uuid(), newSecret()];
      if (left < usesEach) [address, left] = [nextAddress(), sessions.perAddress];
      left -= usesEach;
      opened.push({ refreshToken: mintRefreshToken(keyring, id, 0, secret).text, address });
      return [id, userIdOf(spread(made++, accounts)), sha256(secret), 'pwd', 'portcullis-bench', address, until, until];
    };
    await withConnection(sessions.mysqlUrl, async (connection) => {
      while (opened.length < count) {
        const rows = Array.from({ length: Math.min(BATCH, count - opened.length) }, row);
        await connection.query('INSERT INTO sessions (id, user_id, secret_hash, amr, device, ip_address, expires_at, absolute_expires_at) VALUES ?', [rows]);
      }
    });
    return opened;
  }

  return {
    open,
    async accessTokens(target, count) {
      const opened = await open(target, count, 1);
      const wire = openWire(target.base);
      const tokens: string[] = [];
      const send = (request: Request): Promise<string> =>
        new Promise((resolve, reject) => wire.send(request, (status, body) => (status === 200 ? resolve(body) : reject(new Error(`a refresh answered ${status} ${body}`)))));
      const fetchAll = async (): Promise<void> => {
        for (let one = opened.pop(); one; one = opened.pop()) {
          tokens.push((JSON.parse(await send(refreshRequest(one.refreshToken, one.address))) as { accessToken: string }).accessToken);
        }
      };
      await Promise.all(Array.from({ length: AT_ONCE }, fetchAll)).finally(() => wire.close());
      return tokens;
    },
  };
}

export const refreshRequest = (refreshToken: string, address: string): Request => ({
  method: 'POST',
  path: '/api/auth/refresh',
  headers: { ...JSON_HEADERS, 'x-forwarded-for': address },
  body: JSON.stringify({ refreshToken }),
});
