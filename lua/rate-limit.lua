-- rate-limit: take one place in a sliding window, exactly: never more than max in any windowMs.
-- KEYS[1] window     sorted set of the moments taken, in microseconds; expires with the newest
-- ARGV[1] max        places in any window
-- ARGV[2] windowMs   length of the window
-- ARGV[3] ticket     unique name of this call
-- RETURN {allowed, retryMs}   1 taken, 0 refused and not counted
local window, max, windowMs, ticket = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3]
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
redis.call('ZREMRANGEBYSCORE', window, '-inf', now - windowMs * 1000)
if redis.call('ZCARD', window) >= max then
  local oldest = redis.call('ZRANGE', window, 0, 0, 'WITHSCORES')
  return {0, math.ceil((oldest[2] + windowMs * 1000 - now) / 1000)}
end
redis.call('ZADD', window, now, ticket)
redis.call('PEXPIRE', window, math.ceil(windowMs))
return {1, 0}
