-- login-settle: give a ticket back and count what came of it.
-- KEYS[1] bucket     the bucket the ticket was taken from
-- KEYS[2] held       its tickets being verified
-- KEYS[3] all        the bucket of the whole account; the same as bucket for an unfamiliar source
-- ARGV[1] ticket     unique name of this attempt
-- ARGV[2] outcome    0 release: neither counts nor clears, 1 success, 2 failure
-- ARGV[3] threshold  failures that lock
-- ARGV[4] quietMs    counts are forgotten after so long without a failure, delay or lock
-- ARGV[5] delaysMs   held replies by failure, comma-separated; the last repeats
-- ARGV[6] locksMs    locks by their number, comma-separated; the last repeats
-- RETURN {held, lockedMs, delayMs, ownLockMs, ownStep, allLockMs, allStep}   held 0: the ticket had lapsed; lockedMs: a lock that stood already; the others: what this failure set, steps counting locks in a row
local bucket, held, all, ticket, outcome, threshold, quietMs, delaysMs, locksMs = KEYS[1], KEYS[2], KEYS[3], ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5], ARGV[6]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local function pick(list, n)
  local picked = 0
  for value in string.gmatch(list, '[^,]+') do
    picked, n = tonumber(value), n - 1
    if n == 0 then break end
  end
  return picked
end

local function lockedFor(key)
  return math.max(0, tonumber(redis.call('HGET', key, 'lockedUntil') or 0) - now)
end

local function fail(key)
  -- A lock is not extended by what was under way when it fell.
  if lockedFor(key) > 0 then return 0, 0, 0 end
  local failures = redis.call('HINCRBY', key, 'failures', 1)
  local delay, lock, step = 0, 0, 0
  if failures >= threshold then
    step = redis.call('HINCRBY', key, 'locks', 1)
    lock = pick(locksMs, step)
    redis.call('HSET', key, 'lockedUntil', now + lock, 'recorded', 0)
    redis.call('HDEL', key, 'delayUntil')
  else
    delay = pick(delaysMs, failures)
    redis.call('HSET', key, 'delayUntil', now + delay)
  end
  redis.call('PEXPIRE', key, math.ceil(math.max(delay, lock) + quietMs))
  return delay, lock, step
end

local was = redis.call('ZREM', held, ticket)
if outcome == 0 then return {was, 0, 0, 0, 0, 0, 0} end
if outcome == 1 then
  local locked = math.ceil(lockedFor(bucket))
  if locked > 0 or was == 0 then return {was, locked, 0, 0, 0, 0, 0} end
  redis.call('DEL', bucket)
  if lockedFor(all) == 0 then redis.call('DEL', all) end
  return {was, 0, 0, 0, 0, 0, 0}
end
local locked = math.ceil(lockedFor(bucket))
local delay, ownLock, ownStep = fail(bucket)
local allLock, allStep = ownLock, ownStep
if all ~= bucket then
  local _, lock, step = fail(all)
  allLock, allStep = lock, step
end
return {was, locked, math.ceil(delay), math.ceil(ownLock), ownStep, math.ceil(allLock), allStep}
