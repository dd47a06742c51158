-- relay-publish: put events on their channels and on the stream in one step, if the lease still stands.
-- A relay that was frozen past its lease is refused here, so it cannot publish behind its successor.
-- KEYS[1] stream   every event, in field event; trimmed by age, the only key without a TTL
-- KEYS[2] lease    hash {token, again}
-- ARGV[1] token    unique name of this round
-- ARGV[2] leaseMs  the lease is renewed for so long
-- ARGV[3] keepMs   older messages leave the stream
-- ARGV[4] events   JSON array: type, message, type, message …; an empty one only trims
-- RETURN published   1 done, 0 the lease is another's or gone: nothing was done
local stream, lease, token, leaseMs, keepMs, events = KEYS[1], KEYS[2], ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]
if redis.call('HGET', lease, 'token') ~= token then return 0 end
redis.call('PEXPIRE', lease, leaseMs)
local time = redis.call('TIME')
local oldest = time[1] * 1000 + math.floor(time[2] / 1000) - keepMs
redis.call('XTRIM', stream, 'MINID', '=', string.format('%.0f', math.max(0, oldest)))
local list = cjson.decode(events)
for i = 1, #list, 2 do
  redis.call('XADD', stream, '*', 'event', list[i + 1])
  redis.call('PUBLISH', list[i], list[i + 1])
end
return 1
