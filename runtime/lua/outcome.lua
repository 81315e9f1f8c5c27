-- Writes how a job ended, with one token for those who block on the list and one notice for those who subscribed.
-- 'ok' replaces everything, nothing replaces 'ok', and otherwise the first stays. An 'ok' whose value is lost (field 'lost')
-- only completes: it replaces nothing.
-- KEYS  1 result  2 token
-- ARGV  1 TTL in ms  2 status  3 channel of the notice  4 the fields below as packed fields, '' where they are too large
--       for a notice  5 task  6 attempts  7… field, value
-- Returns 1 where it is written, 0 where an earlier one stands.
local old = redis.call('HGET', KEYS[1], 'status')
if old == 'ok' or (old and ARGV[2] ~= 'ok') then return 0 end
if old then
  for i = 7, #ARGV, 2 do
    if ARGV[i] == 'lost' then return 0 end
  end
  redis.call('DEL', KEYS[1])
end
local t = redis.call('TIME')
local now = string.format('%d%03d', t[1], t[2] / 1000)
redis.call('HSET', KEYS[1], 'status', ARGV[2], 'finished_at', now, 'task', ARGV[5], 'attempts', ARGV[6], unpack(ARGV, 7))
redis.call('PEXPIRE', KEYS[1], ARGV[1])
if redis.call('RPUSH', KEYS[2], '1') > 1 then redis.call('RPOP', KEYS[2]) end
redis.call('PEXPIRE', KEYS[2], ARGV[1])
-- A small outcome travels in its notice; of a large one only the status does, and whoever is told reads the key. A notice
-- only saves time, so a server or a user that may not publish must not keep the outcome from being written.
local notice = ARGV[2]
if ARGV[4] ~= '' then notice = ARGV[4] .. '11:finished_at' .. #now .. ':' .. now end
-- SPUBLISH stays within the shard, where a cluster would carry PUBLISH to every node. Redis 6.2 does not know it.
if type(redis.pcall('SPUBLISH', ARGV[3], notice)) == 'table' then redis.pcall('PUBLISH', ARGV[3], notice) end
return 1
