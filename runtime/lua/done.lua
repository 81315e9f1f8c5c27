-- Marks a dedup key done right after the handler returned, and begins its window anew.
-- KEYS  1 key
-- ARGV  1 job id  2 TTL in ms
-- Returns '' where it is marked, or the value of the other job that holds the key, which stays.
local value = redis.call('GET', KEYS[1])
if value and value ~= 'claimed:' .. ARGV[1] and value ~= 'done:' .. ARGV[1] then return value end
redis.call('SET', KEYS[1], 'done:' .. ARGV[1], 'PX', ARGV[2])
if not value then return 'lost' end
return ''
