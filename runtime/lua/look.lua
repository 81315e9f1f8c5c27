-- Reads an outcome where plain reads may be answered by a replica, which may not have it yet: a script runs on the master.
-- KEYS  1 result
-- Returns field, value…
return redis.call('HGETALL', KEYS[1])
