-- Shared by the scripts that take entries over. Entries that were deleted from the stream but are still pending are
-- acknowledged instead; XCLAIM alone answers them differently from version to version. So is an entry without a job that
-- woke a worker which then died.
local function take(out, stream, consumer, id, count, verdicts)
  local entry = redis.call('XRANGE', stream, id, id)
  if not entry[1] then
    redis.call('XACK', stream, 'workers', id)
    redis.call('HDEL', verdicts, id)
    return
  end
  if #entry[1][2] == 2 and entry[1][2][1] == 'wake' then
    redis.call('XACK', stream, 'workers', id)
    redis.call('XDEL', stream, id)
    return
  end
  redis.call('XCLAIM', stream, 'workers', consumer, 0, id, 'RETRYCOUNT', count, 'JUSTID')
  out[#out + 1] = {id, count, entry[1][2], redis.call('HGET', verdicts, id)}
end
