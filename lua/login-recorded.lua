-- login-recorded: note that a lock stands in MySQL too, so that clearing it there clears it here.
-- KEYS[1] bucket   the bucket that was locked
-- KEYS[2] all      the bucket of the whole account
-- RETURN marked    how many buckets are locked and now marked
local bucket, all = KEYS[1], KEYS[2]
local marked = 0
for _, key in ipairs({bucket, all}) do
  if redis.call('HEXISTS', key, 'lockedUntil') == 1 then
    redis.call('HSET', key, 'recorded', 1)
    marked = marked + 1
  end
end
return marked
