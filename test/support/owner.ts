import type { Deps } from '../../src/deps.js';
import type { Account, NewAccount } from './accounts.js';
import type { Answer, Client } from './client.js';
import type { Inbox } from './inbox.js';

/** A service under test: one in this process, or several processes. */
interface Service {
  account: (account?: NewAccount) => Promise<Account>;
  client: (options?: { ip?: string; userAgent?: string }) => Client;
}

/** An account's owner, signed in with a Bearer token, who walks through the account's life. */
export interface Owner extends Account {
  client: Client;
  token: string;
  bearer: Record<string, string>;
  requestDeletion: (prefix?: string) => Promise<Answer>;
  /** Requests a code and reads it in the mail. */
  deletionCode: () => Promise<string>;
  delete: (otp: unknown, prefix?: string) => Promise<Answer>;
  restoreCode: () => Promise<string>;
  restore: (otp: unknown, prefix?: string) => Promise<Answer>;
}

const API = '/api/auth/account';

export async function signedIn(service: Service, inbox: Inbox, wanted: NewAccount = {}): Promise<Owner> {
  const account = await service.account(wanted);
  const client = service.client();
  const { accessToken } = (await client.login(account.email, account.password)).body as { accessToken: string };
  const bearer = { authorization: `Bearer ${accessToken}` };
  const codesOf = (template: string): number => inbox.to(account.email).filter((message) => message.template === template).length;
  const code = async (template: string, request: () => Promise<Answer>): Promise<string> => {
    const before = codesOf(template);
    await request();
    return (await inbox.nth(account.email, template, before + 1)).data['otp']!;
  };
  const requestDeletion = (prefix = API): Promise<Answer> => client.request('POST', `${prefix}/delete-request`, { headers: bearer });
  return {
    ...account,
    ...{ client, token: accessToken, bearer, requestDeletion },
    deletionCode: () => code('account_deletion_requested', () => requestDeletion()),
    delete: (otp, prefix = API) => client.request('DELETE', prefix, { headers: bearer, body: { otp } }),
    restoreCode: () => code('account_restore_requested', () => client.request('POST', `${API}/restore-request`, { body: { email: account.email } })),
    restore: (otp, prefix = API) => client.request('POST', `${prefix}/restore`, { body: { email: account.email, otp } }),
  };
}

/** A code that is not this one. */
export const wrong = (code: string): string => String((Number(code) + 1) % 1e8).padStart(8, '0');

/** What the database says of an account; of its events those of its life, not of its logins. */
export async function stored(mysql: Deps['mysql'], id: string): Promise<{ deletedAt: Date | null; liveSessions: number; events: Record<string, unknown>[]; audit: string[] }> {
  const [users, sessions, events, audit] = await Promise.all([
    mysql.rows<{ deletedAt: Date | null }>('SELECT deleted_at AS deletedAt FROM users WHERE id = ?', [id]),
    mysql.rows<{ live: number | string }>('SELECT COUNT(*) AS live FROM sessions WHERE user_id = ? AND revoked_at IS NULL', [id]),
    mysql.rows<{ message: string }>("SELECT message FROM event_outbox WHERE user_id = ? AND type <> 'identity.user.risk_detected' ORDER BY seq", [id]),
    mysql.rows<{ entry: string }>("SELECT CONCAT(action, ' ', status) AS entry FROM audit_log WHERE user_id = ? AND action LIKE 'account.%' ORDER BY id", [id]),
  ]);
  return { deletedAt: users[0]!.deletedAt, liveSessions: Number(sessions[0]!.live), events: events.map(({ message }) => JSON.parse(message) as Record<string, unknown>), audit: audit.map(({ entry }) => entry) };
}
