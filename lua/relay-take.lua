-- relay-take: become the one relay that publishes now, or tell the one that does to look once more.
-- KEYS[1] lease    hash {token, again}; lapses when its holder dies
-- ARGV[1] token    unique name of this round
-- ARGV[2] leaseMs  the lease lapses after so long without a publication
-- RETURN {taken, leftMs}   1 taken; 0 held by another for leftMs more
local lease, token, leaseMs = KEYS[1], ARGV[1], ARGV[2]
if redis.call('HSETNX', lease, 'token', token) == 1 then
  redis.call('PEXPIRE', lease, leaseMs)
  return {1, 0}
end
redis.call('HSET', lease, 'again', 1)
return {0, redis.call('PTTL', lease)}
