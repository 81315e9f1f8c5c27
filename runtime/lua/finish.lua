-- Carries out the last step of a verdict: buries the job where it is dead, and ends the entry.
-- KEYS  1 stream  2 verdict  3 dead  4 dead:jobs  5 dead:ids
-- ARGV  1 consumer  2 entry id  3 death id, empty where the job is not dead  4 job id  5 how many dead jobs to keep, 0 for all
--       6… field, value to set
-- Returns {'ended', dropped} with how many older dead jobs had to go, {'stale'} or {'gone'}.
local mine = holding(KEYS[1], ARGV[1], ARGV[2], ARGV[2])
if not mine[ARGV[2]] then return {refusal(KEYS[1], ARGV[2])} end
local dropped = 0
if ARGV[3] ~= '' then
  local entry = redis.call('XRANGE', KEYS[1], ARGV[2], ARGV[2])
  if entry[1] then
    local fields, now = entry[1][2], now_ms()
    for i = 6, #ARGV, 2 do set_field(fields, ARGV[i], ARGV[i + 1]) end
    set_field(fields, 'died_at', string.format('%.0f', now))
    redis.call('HSET', KEYS[4], ARGV[3], pack(fields))
    redis.call('ZADD', KEYS[3], string.format('%.0f', now), ARGV[3])
    if ARGV[4] ~= '' then redis.call('HSET', KEYS[5], ARGV[4], ARGV[3]) end
    local keep = tonumber(ARGV[5])
    if keep > 0 then dropped = trim_dead(KEYS[3], KEYS[4], KEYS[5], redis.call('ZCARD', KEYS[3]) - keep) end
  end
end
redis.call('XACK', KEYS[1], 'workers', ARGV[2])
redis.call('XDEL', KEYS[1], ARGV[2])
redis.call('HDEL', KEYS[2], ARGV[2])
return {'ended', dropped}
