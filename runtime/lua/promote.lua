-- Shared: moves due jobs from the delayed set into the stream, oldest first.
local function promote(stream, delayed, jobs, now, limit)
  local due = redis.call('ZRANGEBYSCORE', delayed, '-inf', string.format('%.0f', now), 'LIMIT', 0, limit)
  for i = 1, #due do
    local packed = redis.call('HGET', jobs, due[i])
    if packed then redis.call('XADD', stream, '*', unpack(unpack_job(packed))) end
    redis.call('HDEL', jobs, due[i])
    redis.call('ZREM', delayed, due[i])
  end
  return #due
end
