-- event-repeat: tell an event again on its channel.
-- In a cluster messages of one subscriber keep their order only when one node sends them: that of the stream.
-- KEYS[1] stream   names that node; not touched
-- ARGV[1] channel  type of the event
-- ARGV[2] message  the event
-- RETURN told   always 1
local stream, channel, message = KEYS[1], ARGV[1], ARGV[2]
redis.call('PUBLISH', channel, message)
return 1
