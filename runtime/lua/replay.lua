-- Moves a dead job back into its stream: same id, fresh attempts and deliveries, history kept.
-- KEYS  1 stream  2 dead  3 dead:jobs  4 dead:ids  5 cancel
-- ARGV  1 death id  2… names of fields to drop
-- Returns 1 where the job was moved, 0 where it is not dead (any more).
local packed = redis.call('HGET', KEYS[3], ARGV[1])
if not packed then return 0 end
local fields = unpack_job(packed)
if #fields > 4000 then return redis.error_reply('SMALLAGE a dead job of ' .. #fields / 2 .. ' fields cannot be replayed') end
for i = 2, #ARGV do drop_field(fields, ARGV[i]) end
drop_field(fields, 'attempt')
remove_dead(KEYS[2], KEYS[3], KEYS[4], ARGV[1])
local id = job_id(fields)
if id then redis.call('ZREM', KEYS[5], id) end
redis.call('XADD', KEYS[1], '*', unpack(fields))
return 1
