/** Replies that the document declares and no test can bring about, and why. Whatever else is not reached fails the suite. */
export const UNREACHED: readonly { label: RegExp; why: string }[] = [
  { label: / 500 INTERNAL$/, why: 'no request is known that leads there: a reply with 500 fails the test that gets it' },
  { label: /^GET \/(health\/live|health\/ready|openapi\.json|metrics|pool|docs.*) 503 UNAVAILABLE$/, why: 'asks no store that could be down: only a handler that is silent for 30 s leads there' },
];
