import { Secret, TOTP } from 'otpauth';
import type { Deps } from '../../src/deps.js';
import type { Account, NewAccount } from './accounts.js';
import type { Answer, Client } from './client.js';

interface Service {
  app: { needs: Pick<Deps, 'clock'> };
  account: (account?: NewAccount) => Promise<Account>;
  client: (options?: { ip?: string; userAgent?: string }) => Client;
}

/** An account's owner, signed in with a Bearer token, who looks after the second factors. */
export interface FactorOwner extends Account {
  client: Client;
  bearer: Record<string, string>;
  ask: (method: string, path: string, body?: unknown, headers?: Record<string, string>) => Promise<Answer>;
  enrol: (password?: unknown) => Promise<Answer>;
  confirm: (code: unknown) => Promise<Answer>;
  remove: (code: unknown, password?: unknown) => Promise<Answer>;
  renew: (password?: unknown) => Promise<Answer>;
  /** What an app that knows the secret shows, some steps from now by the service's clock. */
  code: (secret: string, steps?: number) => string;
  /** Sets an app up and gives its secret and the recovery codes. The step of the code is used up. */
  secure: () => Promise<{ secret: string; recoveryCodes: string[] }>;
}

const STEP_MS = 30_000;

export const codeAt = (secret: string, moment: number): string => new TOTP({ secret: Secret.fromBase32(secret) }).generate({ timestamp: moment });

export async function factorOwner(service: Service, wanted: NewAccount = {}): Promise<FactorOwner> {
  const account = await service.account(wanted);
  const client = service.client();
  const { accessToken } = (await client.login(account.email, account.password)).body as { accessToken: string };
  const bearer = { authorization: `Bearer ${accessToken}` };
  const ask: FactorOwner['ask'] = (method, path, body, headers = bearer) => client.request(method, `/api/auth/mfa${path}`, { headers, ...(body === undefined ? {} : { body }) });
  const enrol = (password: unknown = account.password): Promise<Answer> => ask('POST', '/totp', { password });
  const confirm = (code: unknown): Promise<Answer> => ask('POST', '/totp/confirm', { code });
  const code = (secret: string, steps = 0): string => codeAt(secret, service.app.needs.clock.now() + steps * STEP_MS);
  return {
    ...account,
    ...{ client, bearer, ask, enrol, confirm, code },
    remove: (sent, password = account.password) => ask('DELETE', '/totp', { password, code: sent }),
    renew: (password = account.password) => ask('POST', '/recovery-codes', { password }),
    async secure() {
      const secret = (await enrol()).body['secret'] as string;
      // The step before: the present one is left for the test.
      const { recoveryCodes } = (await confirm(code(secret, -1))).body as { recoveryCodes: string[] };
      return { secret, recoveryCodes };
    },
  };
}

/** The token of a login whose second factor is due. */
export const challenge = async (from: Client, { email, password }: Pick<Account, 'email' | 'password'>): Promise<string> => (await from.login(email, password)).body['mfaToken'] as string;

export const verify = (from: Client, mfaToken: unknown, method: string, code: unknown): Promise<Answer> => from.request('POST', '/api/auth/mfa/verify-login', { body: { mfaToken, method, code } });
