import t from 'tap';
import { ApiError } from '../../src/errors.js';

t.test('a refusal takes no stack trace, what caused it keeps its own, and later errors have theirs', (t) => {
  const cause = new Error('what went wrong');
  const refusal = new ApiError('UNAVAILABLE', { retryAfter: 1 }, { cause });
  t.ok(refusal instanceof Error);
  t.equal(String(refusal), 'ApiError: UNAVAILABLE');
  t.notMatch(refusal.stack, /\n +at /);
  t.equal(refusal.cause, cause);
  t.match(cause.stack, /errors\.test/);
  t.match(new Error('later').stack, /errors\.test/);
  t.end();
});
