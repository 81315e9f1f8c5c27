-- Shared by the scripts that only the holder of an entry may run. A group that is gone (the stream was deleted) means
-- that nobody holds anything.
local function holding(stream, consumer, first, last)
  local rows = redis.pcall('XPENDING', stream, 'workers', first, last, 100000, consumer)
  if rows.err then
    if string.find(rows.err, 'NOGROUP', 1, true) then return {}, {} end
    error(rows.err)
  end
  local count, idle = {}, {}
  for i = 1, #rows do
    count[rows[i][1]] = rows[i][4]
    idle[rows[i][1]] = rows[i][3]
  end
  return count, idle
end

-- Answers 'stale' where another consumer holds the entry, and 'gone' where nobody does: then it has already ended.
local function refusal(stream, id)
  local rows = redis.pcall('XPENDING', stream, 'workers', id, id, 1)
  if rows.err or #rows == 0 then return 'gone' end
  return 'stale'
end
