-- Shared by the scripts that take entries over. Entries that were deleted from the stream but are still pending are
-- acknowledged instead; XCLAIM alone answers them differently from version to version.
local function take(out, stream, consumer, id, count, verdicts)
  local entry = redis.call('XRANGE', stream, id, id)
  if not entry[1] then
    redis.call('XACK', stream, 'workers', id)
    if verdicts then redis.call('HDEL', verdicts, id) end
    return
  end
  redis.call('XCLAIM', stream, 'workers', consumer, 0, id, 'RETRYCOUNT', count, 'JUSTID')
  out[#out + 1] = {id, count, entry[1][2], verdicts and redis.call('HGET', verdicts, id) or false}
end
