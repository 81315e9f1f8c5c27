-- Claims a dedup key for a job, immediately before its handler is called.
-- KEYS  1 key
-- ARGV  1 job id  2 TTL in ms
-- Returns {'claimed'} where the key was free, {'again'} where the job holds it already, {'done'} where this very job is
-- done, {'held', value} where another job holds the key.
local value = redis.call('GET', KEYS[1])
if not value then
  redis.call('SET', KEYS[1], 'claimed:' .. ARGV[1], 'PX', ARGV[2])
  return {'claimed'}
end
if value == 'claimed:' .. ARGV[1] then
  if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
  return {'again'}
end
if value == 'done:' .. ARGV[1] then return {'done'} end
return {'held', value}
