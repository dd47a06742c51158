-- otp-settle: end a claim.
-- KEYS[1] otp      hash {codeHash, goodUntil, used, claim, claimUntil, failures, failuresUntil}
-- ARGV[1] ticket   unique name of the claim
-- ARGV[2] outcome  0 give back: the code is as good as before, 1 spend: it is used up and the misses are forgotten
-- RETURN held      0 when the claim had lapsed and another took its place, or a newer code was issued
local otp, ticket, outcome = KEYS[1], ARGV[1], tonumber(ARGV[2])
if redis.call('HGET', otp, 'claim') ~= ticket then return 0 end
redis.call('HDEL', otp, 'claim', 'claimUntil')
if outcome == 1 then
  redis.call('HSET', otp, 'used', 1)
  redis.call('HDEL', otp, 'failures', 'failuresUntil')
end
return 1
