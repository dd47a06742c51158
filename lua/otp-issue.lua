-- otp-issue: make a new code the only good one. Failed attempts stay counted: a new code is no new chance.
-- KEYS[1] otp        hash {codeHash, goodUntil, used, claim, claimUntil, failures, failuresUntil}
-- KEYS[2] issues     sorted set of the account's issues, by the moment
-- ARGV[1] codeHash   keyed hash of the code
-- ARGV[2] ttlMs      the code is good for so long
-- ARGV[3] maxIssues  issues in any window
-- ARGV[4] windowMs   length of that window
-- ARGV[5] ticket     unique name of this issue
-- RETURN issued      1 issued, 0 too many: nothing was changed
local otp, issues, codeHash, ttlMs, maxIssues, windowMs, ticket = KEYS[1], KEYS[2], ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZREMRANGEBYSCORE', issues, '-inf', now - windowMs)
if redis.call('ZCARD', issues) >= maxIssues then return 0 end
redis.call('ZADD', issues, now, ticket)
redis.call('PEXPIRE', issues, windowMs)
redis.call('HSET', otp, 'codeHash', codeHash, 'goodUntil', now + ttlMs)
redis.call('HDEL', otp, 'used', 'claim', 'claimUntil')
redis.call('PEXPIRE', otp, math.max(redis.call('PTTL', otp), ttlMs))
return 1
