-- otp-claim: check one code, count a miss, and take the right one for one caller.
-- KEYS[1] otp          hash {codeHash, goodUntil, used, claim, claimUntil, failures, failuresUntil}
-- KEYS[2] other        the same for the account's other purpose
-- ARGV[1] codeHash     keyed hash of the code that was sent
-- ARGV[2] maxFailures  misses that lock
-- ARGV[3] lockMs       misses are remembered, and a lock stands, for so long after the last
-- ARGV[4] ticket       unique name of this claim
-- ARGV[5] claimMs      a claim lapses after so long: its node died
-- RETURN {outcome, retryMs}   0 claimed, 1 refused, 2 locked (nothing was compared)
local otp, other, codeHash, maxFailures, lockMs, ticket, claimMs = KEYS[1], KEYS[2], ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4], tonumber(ARGV[5])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local row = redis.call('HMGET', otp, 'codeHash', 'goodUntil', 'used', 'claimUntil', 'failures', 'failuresUntil')
local failuresUntil = tonumber(row[6] or 0)
local failures = failuresUntil > now and tonumber(row[5]) or 0
if failures >= maxFailures then return {2, failuresUntil - now} end
if row[1] ~= codeHash or tonumber(row[2]) <= now then
  redis.call('HSET', otp, 'failures', failures + 1, 'failuresUntil', now + lockMs)
  redis.call('PEXPIRE', otp, math.max(redis.call('PTTL', otp), lockMs))
  return {1, 0}
end
-- The right code, in use or used up: refused, and no guess that could lock the account.
if row[3] or tonumber(row[4] or 0) > now then return {1, 0} end
redis.call('HSET', otp, 'claim', ticket, 'claimUntil', now + claimMs)
redis.call('PEXPIRE', otp, math.max(redis.call('PTTL', otp), claimMs))
-- A code of the other purpose is from before the account came into its present state. It ends here, where no
-- crash can come between: else it would be good again once the account is back in that state.
redis.call('HDEL', other, 'codeHash', 'goodUntil', 'used', 'claim', 'claimUntil')
return {0, 0}
