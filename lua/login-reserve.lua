-- login-reserve: take the right to verify one guess, before it costs a hash.
-- Guesses being verified count as failures until they settle, so no burst overruns the threshold.
-- KEYS[1] bucket      hash {failures, locks, lockedUntil, delayUntil, recorded}
-- KEYS[2] held        sorted set of tickets being verified, by the moment they lapse
-- ARGV[1] ticket      unique name of this attempt
-- ARGV[2] threshold   failures that lock
-- ARGV[3] holdMs      a ticket lapses after so long: its node died
-- ARGV[4] storedMs    what is left of a lock that MySQL knows of
-- ARGV[5] storedStep  which lock in a row it is or was; 0 when nothing of it counts any more
-- ARGV[6] keepMs      for how long that counts
-- RETURN {outcome, retryMs, recorded}   0 entered, 1 throttled, 2 locked (recorded: MySQL has it too), 3 full
local bucket, held, ticket, threshold, holdMs, storedMs, storedStep, keepMs = KEYS[1], KEYS[2], ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if storedStep > 0 and redis.call('HEXISTS', bucket, 'locks') == 0 then
  -- Redis lost what it had counted: the next lock is the step after the one that MySQL remembers.
  local counted = tonumber(redis.call('HGET', bucket, 'failures') or 0)
  redis.call('HSET', bucket, 'failures', math.max(threshold, counted), 'locks', storedStep, 'lockedUntil', now + storedMs, 'recorded', 1)
  redis.call('PEXPIRE', bucket, math.ceil(keepMs))
end
local row = redis.call('HMGET', bucket, 'failures', 'lockedUntil', 'delayUntil', 'recorded')
local failures, lockedUntil, delayUntil = tonumber(row[1] or 0), tonumber(row[2] or 0), tonumber(row[3] or 0)
if lockedUntil > now then return {2, math.ceil(math.max(lockedUntil - now, storedMs)), tonumber(row[4] or 0)} end
-- An operator set the lock.
if storedMs > 0 then return {2, storedMs, 1} end
if delayUntil > now then return {1, math.ceil(delayUntil - now), 0} end
redis.call('ZREMRANGEBYSCORE', held, '-inf', now)
-- After a lock one guess at a time: the next failure locks again.
if redis.call('ZCARD', held) >= math.max(1, threshold - failures) then return {3, 0, 0} end
redis.call('ZADD', held, now + holdMs, ticket)
redis.call('PEXPIRE', held, holdMs)
return {0, 0, 0}
