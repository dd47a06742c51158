/** The chapters of the API document, in its order. */
export const TAGS = {
  'Registration': 'From a new address to an account that can sign in.',
  'Signing in': 'Tokens for credentials, and their renewal.',
  'Second factors': 'One-time passwords and recovery codes.',
  'Providers': 'Signing in with an account elsewhere, by OpenID Connect.',
  'Password': 'Forgotten, reset and changed.',
  'Sessions': 'Where the account is signed in.',
  'Account': 'Who the caller is, what is held about them, and the end of the account.',
  'Keys': 'What others need to verify tokens and to talk to the service.',
  'Operations': 'For those who run the service.',
} as const satisfies Record<string, string>;

export type Tag = keyof typeof TAGS;
