-- relay-release: end a round, unless another node asked for a further look meanwhile.
-- KEYS[1] lease    hash {token, again}
-- ARGV[1] token    unique name of this round
-- ARGV[2] leaseMs  the lease is renewed for so long when it is kept
-- RETURN again   1 look again, the lease is kept; 0 it is released, or was another's already
local lease, token, leaseMs = KEYS[1], ARGV[1], ARGV[2]
local row = redis.call('HMGET', lease, 'token', 'again')
if row[1] ~= token then return 0 end
if row[2] then
  redis.call('HDEL', lease, 'again')
  redis.call('PEXPIRE', lease, leaseMs)
  return 1
end
redis.call('DEL', lease)
return 0
