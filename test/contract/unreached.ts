/** Replies that the document declares and no test can bring about at will, and why; `rare` ones may come about. Whatever else is not reached fails the suite. */
export const UNREACHED: readonly { label: RegExp; why: string; rare?: true }[] = [
  { label: /^(GET|PUT) \/(health\/live|health\/ready|openapi\.json|metrics|pool|docs\S*) (500 INTERNAL|503 UNAVAILABLE)$/, why: 'asks no store that could be down or broken: only a handler that is silent for 30 s, or a fault nobody knows of, leads there' },
  { label: /^POST \/api\/auth\/(account\/restore-request|register|email\/resend|password\/forgot) 500 INTERNAL$/, why: 'answers before it looks anything up' },
  { label: /^GET \/api\/auth\/oauth\/\S+ 500 INTERNAL$/, why: 'asks Redis alone, which has no tables that could be missing; what fails behind it goes to the client as an error of the fragment' },
  { label: /^GET \/\.well-known\/jwks\.json (500 INTERNAL|503 UNAVAILABLE)$/, why: 'is answered from memory: only keys that could not be read for 45 minutes are not shown, which test/src/auth/jwks sees without HTTP, and a test with shorter times on a busy machine', rare: true },
];
