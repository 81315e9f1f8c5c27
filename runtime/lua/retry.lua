-- Moves an entry into the delayed set: a failed attempt, or a task that nobody here knows.
-- KEYS  1 stream  2 delayed  3 delayed:jobs
-- ARGV  1 consumer  2 entry id  3 job id  4 delay in ms, -1 for an unknown task  5 how long a task may stay unknown, ms
--       6 horizon in ms: workers look by themselves this often  7… field, value to set
-- Returns {'moved', delay}, {'stale'}, {'gone'}, or {'unknown', age} where the task was unknown for too long.
local mine = holding(KEYS[1], ARGV[1], ARGV[2], ARGV[2])
if not mine[ARGV[2]] then return {refusal(KEYS[1], ARGV[2])} end
local entry = redis.call('XRANGE', KEYS[1], ARGV[2], ARGV[2])
if not entry[1] then
  redis.call('XACK', KEYS[1], 'workers', ARGV[2])
  return {'gone'}
end
local fields, now, delay = entry[1][2], now_ms(), tonumber(ARGV[4])
if delay < 0 then
  local since = tonumber(field(fields, 'unknown_since') or '') or now
  local age = now - since
  if age >= tonumber(ARGV[5]) then return {'unknown', age} end
  set_field(fields, 'unknown_since', string.format('%.0f', since))
  delay = math.min(30000, math.max(1000, age))
else
  drop_field(fields, 'unknown_since')
end
for i = 7, #ARGV, 2 do set_field(fields, ARGV[i], ARGV[i + 1]) end
schedule(KEYS[1], KEYS[2], KEYS[3], ARGV[3], now + delay, fields, now, tonumber(ARGV[6]))
redis.call('XACK', KEYS[1], 'workers', ARGV[2])
redis.call('XDEL', KEYS[1], ARGV[2])
return {'moved', delay}
