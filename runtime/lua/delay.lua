-- Shared by the scripts that put a job into the delayed set.
-- A worker sleeps until the earliest job it knows of and looks at least every horizon ms; a job that is due before
-- both wakes one by an entry without a job in the stream.
local function schedule(stream, delayed, jobs, id, due, fields, now, horizon)
  local member = id
  if redis.call('HEXISTS', jobs, member) == 1 then
    local serial = 1
    while redis.call('HEXISTS', jobs, id .. ':' .. serial) == 1 do serial = serial + 1 end
    member = id .. ':' .. serial
  end
  redis.call('HSET', jobs, member, pack(fields))
  redis.call('ZADD', delayed, string.format('%.0f', due), member)
  if horizon > 0 and due < now + horizon then
    local head = redis.call('ZRANGE', delayed, 0, 0)
    if head[1] == member then redis.call('XADD', stream, '*', 'wake', '1') end
  end
end
