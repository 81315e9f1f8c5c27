-- Writes how a job ended, with one token for those who block on the list and one notice for those who subscribed.
-- 'ok' replaces everything, nothing replaces 'ok', and otherwise the first stays. An 'ok' whose value is lost (field 'lost')
-- only completes: it replaces nothing.
-- KEYS  1 result  2 token
-- ARGV  1 TTL in ms  2 status  3 channel of the notice  4 notice: the fields below as packed fields, or the status alone
--       where they are too large  5 when the job ended, in ms  6 task  7 attempts  8… field, value
-- Returns 1 where it is written, 0 where an earlier one stands.
local old = redis.call('HGET', KEYS[1], 'status')
if old == 'ok' or (old and ARGV[2] ~= 'ok') then return 0 end
if old then
  for i = 8, #ARGV, 2 do
    if ARGV[i] == 'lost' then return 0 end
  end
  redis.call('DEL', KEYS[1])
end
redis.call('HSET', KEYS[1], 'status', ARGV[2], 'finished_at', ARGV[5], 'task', ARGV[6], 'attempts', ARGV[7], unpack(ARGV, 8))
redis.call('PEXPIRE', KEYS[1], ARGV[1])
if redis.call('RPUSH', KEYS[2], '1') > 1 then redis.call('RPOP', KEYS[2]) end
redis.call('PEXPIRE', KEYS[2], ARGV[1])
-- A small outcome travels in its notice; of a large one only the status does, and whoever is told reads the key. A notice
-- only saves time, so a server or a user that may not publish must not keep the outcome from being written.
-- SPUBLISH stays within the shard, where a cluster would carry PUBLISH to every node. Redis 6.2 does not know it.
if type(redis.pcall('SPUBLISH', ARGV[3], ARGV[4])) == 'table' then redis.pcall('PUBLISH', ARGV[3], ARGV[4]) end
return 1
