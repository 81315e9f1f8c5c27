-- Looks at a dedup key, and frees it where an operator asks for that.
-- KEYS  1 key
-- ARGV  1 1 to free the key, 0 to look
-- Returns {value, remaining ms}; {} where the key is free.
local value = redis.call('GET', KEYS[1])
if not value then return {} end
local remaining = redis.call('PTTL', KEYS[1])
if ARGV[1] == '1' then redis.call('DEL', KEYS[1]) end
return {value, remaining}
