-- Shared by the scripts that remove dead jobs.
local function remove_dead(dead, jobs, ids, death)
  local packed = redis.call('HGET', jobs, death)
  redis.call('ZREM', dead, death)
  redis.call('HDEL', jobs, death)
  if packed then
    local id = job_id(unpack_job(packed))
    if id and redis.call('HGET', ids, id) == death then redis.call('HDEL', ids, id) end
  end
  return packed
end

-- Removes the oldest ones, at most 100 at a time so that no script runs long.
local function trim_dead(dead, jobs, ids, excess)
  if excess <= 0 then return 0 end
  local old = redis.call('ZRANGE', dead, 0, math.min(excess, 100) - 1)
  for i = 1, #old do remove_dead(dead, jobs, ids, old[i]) end
  return #old
end
