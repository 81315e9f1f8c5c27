-- Writes how a job ended, with one token for those who wait. 'ok' replaces everything, nothing replaces 'ok', and
-- otherwise the first stays. An 'ok' whose value is lost (field 'lost') only completes: it replaces nothing.
-- KEYS  1 result  2 token
-- ARGV  1 TTL in ms  2 status  3… field, value
-- Returns the status that stands.
local old = redis.call('HGET', KEYS[1], 'status')
if old == 'ok' or (old and ARGV[2] ~= 'ok') then return old end
if old then
  for i = 3, #ARGV, 2 do
    if ARGV[i] == 'lost' then return old end
  end
end
redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[1], 'status', ARGV[2], 'finished_at', string.format('%.0f', now_ms()), unpack(ARGV, 3))
redis.call('PEXPIRE', KEYS[1], ARGV[1])
if redis.call('EXISTS', KEYS[2]) == 0 then redis.call('RPUSH', KEYS[2], '1') end
redis.call('PEXPIRE', KEYS[2], ARGV[1])
return ARGV[2]
