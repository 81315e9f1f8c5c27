-- Keeps a claim alive for a while: through a long run, or through the delay before the next attempt.
-- KEYS  1 key
-- ARGV  1 job id  2 TTL in ms that it shall have  3 extend only where less than this is left, in ms
-- Returns 'kept', 'lost' where the key is gone, or the value of the other job that holds it.
local value = redis.call('GET', KEYS[1])
if not value then return 'lost' end
if value ~= 'claimed:' .. ARGV[1] then return value end
if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[3]) then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return 'kept'
