-- One look at a queue, by every worker about once a second and whenever a delayed job comes due: registers the worker,
-- picks up what others handed back or lost, and promotes due jobs.
-- KEYS  1 stream  2 delayed  3 delayed:jobs  4 workers  5 pass  6 verdict  7 cancel  8 paused
-- ARGV  1 consumer  2 lease in ms  3 how many entries it may take  4 how many of those may be suspects
--       5 how many jobs to promote at most  6 time between passes in ms  7 cancel marks from this score on
--       8 a suspect was delivered more often than this  9… entries that the worker still has in hand, whatever became of their leases: those it must not take
-- Returns {paused, next, more, {{id, count, fields, verdict}…}, {cancelled job id, score…}, now}; next: ms until the next
-- delayed job is due, -1 for none; more: 1 where entries that were handed back still wait for somebody with room, plus 2 where suspects do.
local now, lease = now_ms(), tonumber(ARGV[2])
local room, suspects, harmless = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[8])
local paused = redis.call('EXISTS', KEYS[8])
local taken = {}

redis.call('HSET', KEYS[4], ARGV[1], string.format('%.0f:%.0f', now, lease))
local in_hand = {}
for i = 9, #ARGV do in_hand[ARGV[i]] = true end
local function may_take(id, count)
  if room <= 0 or in_hand[id] then return false end
  if count > harmless then
    if suspects <= 0 then return false end
    suspects = suspects - 1
  end
  room = room - 1
  return true
end

local more, suspects_wait = 0, 0
local function left_behind(id, count)
  if in_hand[id] then return end
  if count > harmless then suspects_wait = 2 else more = 1 end
end

-- Suspects are taken one at a time and may be many: what waits behind them must be seen.
local released = redis.pcall('XPENDING', KEYS[1], 'workers', '-', '+', math.max(room, 0) + 1000, 'released')
if released.err then
  if not string.find(released.err, 'NOGROUP', 1, true) then return redis.error_reply(released.err) end
  redis.call('XGROUP', 'CREATE', KEYS[1], 'workers', '0', 'MKSTREAM')
  released = {}
end
if paused == 0 then
  for i = 1, #released do
    if may_take(released[i][1], released[i][4]) then
      take(taken, KEYS[1], ARGV[1], released[i][1], released[i][4], KEYS[6])
    else
      left_behind(released[i][1], released[i][4])
    end
  end
end

if paused == 0 and redis.call('SET', KEYS[5], ARGV[1], 'NX', 'PX', ARGV[6]) then
  -- An entry is lost once it was idle for as long as its own holder's lease.
  local leases, shortest = {}, lease
  local workers = redis.call('HGETALL', KEYS[4])
  for i = 1, #workers, 2 do
    local theirs = tonumber(string.match(workers[i + 1], ':(%d+)$'))
    leases[workers[i]] = theirs
    if theirs < shortest then shortest = theirs end
  end
  local rows = redis.call('XPENDING', KEYS[1], 'workers', 'IDLE', shortest, '-', '+', 1000 + math.max(room, 0))
  for i = 1, #rows do
    local id, holder, idle, count = rows[i][1], rows[i][2], rows[i][3], rows[i][4] + 1
    if holder ~= 'released' and holder ~= ARGV[1] and idle >= (leases[holder] or lease) then
      if may_take(id, count) then
        take(taken, KEYS[1], ARGV[1], id, count, KEYS[6])
      else
        -- Whoever has room first takes it from there, without waiting for the next pass.
        redis.call('XCLAIM', KEYS[1], 'workers', 'released', 0, id, 'RETRYCOUNT', count, 'JUSTID')
        left_behind(id, count)
      end
    end
  end
end

promote(KEYS[1], KEYS[2], KEYS[3], now, tonumber(ARGV[5]))
local head, next_due = redis.call('ZRANGE', KEYS[2], 0, 0, 'WITHSCORES'), -1
if head[2] then next_due = math.max(0, tonumber(head[2]) - now) end

local cancelled = {}
if redis.call('EXISTS', KEYS[7]) == 1 then
  redis.call('ZREMRANGEBYSCORE', KEYS[7], '-inf', string.format('%.0f', now))
  cancelled = redis.call('ZRANGEBYSCORE', KEYS[7], ARGV[7], '+inf', 'WITHSCORES')
end
return {paused, next_due, more + suspects_wait, taken, cancelled, now}
