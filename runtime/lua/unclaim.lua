-- Releases the claim of a job that died, expired or was cancelled. Never another job's, and never a done key.
-- KEYS  1 key
-- ARGV  1 job id
-- Returns 1 where the claim was released.
if redis.call('GET', KEYS[1]) == 'claimed:' .. ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0
