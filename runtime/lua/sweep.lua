-- Removes what dead workers and deleted streams leave, and dead jobs beyond their age. Gated to one run at a time per queue.
-- KEYS  1 stream  2 workers  3 gate  4 verdict  5 dead  6 dead:jobs  7 dead:ids
-- ARGV  1 time between runs, ms  2 a worker that was not seen for this long is gone, ms  3 largest age of a dead job, ms, 0 for any
-- Returns {consumers removed, dead jobs removed}.
if not redis.call('SET', KEYS[3], '1', 'NX', 'PX', ARGV[1]) then return {0, 0} end
local now, gone = now_ms(), tonumber(ARGV[2])

local seen, removed = {}, 0
local workers = redis.call('HGETALL', KEYS[2])
for i = 1, #workers, 2 do
  local at, lease = string.match(workers[i + 1], '^(%d+):(%d+)$')
  seen[workers[i]] = now - tonumber(at) < math.max(gone, 2 * tonumber(lease))
  if not seen[workers[i]] then
    local held = redis.pcall('XPENDING', KEYS[1], 'workers', '-', '+', 1, workers[i])
    if held.err or #held == 0 then redis.call('HDEL', KEYS[2], workers[i]) end
  end
end
local consumers = redis.pcall('XINFO', 'CONSUMERS', KEYS[1], 'workers')
if not consumers.err then
  for i = 1, #consumers do
    local info = {}
    for j = 1, #consumers[i], 2 do info[consumers[i][j]] = consumers[i][j + 1] end
    -- Deleting a consumer would delete what it holds.
    if info.name ~= 'released' and not seen[info.name] and info.pending == 0 and info.idle > gone then
      redis.call('XGROUP', 'DELCONSUMER', KEYS[1], 'workers', info.name)
      removed = removed + 1
    end
  end
end

if redis.call('EXISTS', KEYS[4]) == 1 then
  local open = redis.call('HKEYS', KEYS[4])
  for i = 1, math.min(#open, 1000) do
    if #redis.call('XRANGE', KEYS[1], open[i], open[i]) == 0 then redis.call('HDEL', KEYS[4], open[i]) end
  end
end

local old = 0
if tonumber(ARGV[3]) > 0 then
  local expired = redis.call('ZRANGEBYSCORE', KEYS[5], '-inf', string.format('%.0f', now - tonumber(ARGV[3])), 'LIMIT', 0, 1000)
  for i = 1, #expired do remove_dead(KEYS[5], KEYS[6], KEYS[7], expired[i]) end
  old = #expired
end
return {removed, old}
