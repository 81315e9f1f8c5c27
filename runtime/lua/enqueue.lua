-- Accepts a job that a bare XADD cannot: one that is due later, that expires, or whose id the caller brought.
-- KEYS  1 stream  2 delayed  3 delayed:jobs  4 id marker (any key of the slot where there is no marker)
-- ARGV  1 job id  2 window of the id marker in ms, 0 for none  3 delay in ms  4 due time in ms, 0 where the delay counts
--       5 expires in ms, 0 for never  6 horizon in ms: workers look by themselves this often  7… field, value
-- Returns 1 where the job was stored, 0 where its id was known.
if tonumber(ARGV[2]) > 0 then
  if not redis.call('SET', KEYS[4], '1', 'NX', 'PX', ARGV[2]) then return 0 end
end
local fields = {}
for i = 7, #ARGV do fields[i - 6] = ARGV[i] end
local now = now_ms()
local due = now + tonumber(ARGV[3])
if tonumber(ARGV[4]) > 0 then due = tonumber(ARGV[4]) end
if due < now then due = now end
if tonumber(ARGV[5]) > 0 then set_field(fields, 'expires_at', string.format('%.0f', due + tonumber(ARGV[5]))) end
if due <= now then
  redis.call('XADD', KEYS[1], '*', unpack(fields))
else
  schedule(KEYS[1], KEYS[2], KEYS[3], ARGV[1], due, fields, now, tonumber(ARGV[6]))
end
return 1
