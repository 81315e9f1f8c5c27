-- Marks a job of this queue as cancelled, and brings it forward where it is delayed, so that a worker ends it soon.
-- KEYS  1 cancel  2 delayed  3 stream
-- ARGV  1 job id  2 how long the mark is kept, ms
local now = now_ms()
redis.call('ZADD', KEYS[1], string.format('%.0f', now + tonumber(ARGV[2])), ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[2] + 60000)
if redis.call('ZSCORE', KEYS[2], ARGV[1]) then
  redis.call('ZADD', KEYS[2], string.format('%.0f', now), ARGV[1])
  redis.call('XADD', KEYS[3], '*', 'wake', '1')
end
return 1
