-- deletion-ask: open a list for answers and ask.
-- The list begins with an empty element, so that an answer pushed after the deadline lands on a key that
-- has a TTL already instead of making one that has none.
-- KEYS[1] answers  list that services push their answers to
-- ARGV[1] keepMs   TTL of that list
-- ARGV[2] channel  channel of the question
-- ARGV[3] message  the question
-- RETURN asked   always 1
local answers, keepMs, channel, message = KEYS[1], ARGV[1], ARGV[2], ARGV[3]
redis.call('RPUSH', answers, '')
redis.call('PEXPIRE', answers, keepMs)
redis.call('PUBLISH', channel, message)
return 1
