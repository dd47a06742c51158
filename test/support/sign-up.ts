import type { Answer, Client } from './client.js';
import type { Inbox, Message } from './inbox.js';

type Body = Record<string, unknown>;

/** The endpoints of sign-up and recovery, called by a client of its own each time, and what they mail. */
export interface SignUp {
  register: (email: unknown, password: unknown, more?: Body) => Promise<Answer>;
  verify: (token: unknown) => Promise<Answer>;
  resend: (email: unknown) => Promise<Answer>;
  forgot: (email: unknown) => Promise<Answer>;
  reset: (token: unknown, password: unknown) => Promise<Answer>;
  /** The token of the nth verification or reset mail, once it has come. */
  token: (email: string, of: 'verify' | 'reset', n?: number) => Promise<string>;
  /** Asks for a reset token and reads it in the mail. */
  resetToken: (email: string) => Promise<string>;
}

const TEMPLATES = { verify: 'email_verification_requested', reset: 'password_reset_requested' } as const;

export function signUpAt(service: { client: (options?: { ip?: string }) => Client }, inbox: Inbox): SignUp {
  const post = (path: string, body: Body): Promise<Answer> => service.client().request('POST', `/api/auth/${path}`, { body });
  const mails = (email: string, of: 'verify' | 'reset'): Message[] => inbox.to(email).filter((mail) => mail.template === TEMPLATES[of]);
  const token = async (email: string, of: 'verify' | 'reset', n = 1): Promise<string> => (await inbox.nth(email, TEMPLATES[of], n)).data['token']!;
  const forgot = (email: unknown): Promise<Answer> => post('password/forgot', { email });
  return {
    register: (email, password, more = {}) => post('register', { email, password, ...more }),
    verify: (given) => post('email/verify', { token: given }),
    resend: (email) => post('email/resend', { email }),
    forgot,
    reset: (given, password) => post('password/reset', { token: given, password }),
    token,
    async resetToken(email) {
      const before = mails(email, 'reset').length;
      const { status, text } = await forgot(email);
      if (status !== 204) throw new Error(`forgot answered ${status} ${text}`);
      return token(email, 'reset', before + 1);
    },
  };
}

/** Longer than an errand rests before it starts, in ms: after it, what has not happened will not happen. */
export const QUIET_MS = 450;
