-- Clears the outcome of a burial before its job is replayed, so that waiters wait for the new one.
-- KEYS  1 result  2 token
-- ARGV  1 death id
-- Returns 1 where the outcome was that burial's, 0 where it was not and stays.
if redis.call('HGET', KEYS[1], 'death') ~= ARGV[1] then return 0 end
redis.call('DEL', KEYS[1], KEYS[2])
return 1
