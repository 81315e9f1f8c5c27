-- Renews the lease of every entry that a worker has in hand, and finds those that it holds without knowing: their
-- delivery was lost on the way.
-- KEYS  1 stream  2 verdict
-- ARGV  1 consumer  2 idle time in ms after which an entry not in hand counts as lost on the way  3… entry ids in hand
-- Returns {lost ids, {{id, count, fields, verdict}…}}.
local mine, idle = holding(KEYS[1], ARGV[1], '-', '+')
local lost, by_count = {}, {}
for i = 3, #ARGV do
  local count = mine[ARGV[i]]
  if count then
    by_count[count] = by_count[count] or {}
    table.insert(by_count[count], ARGV[i])
    mine[ARGV[i]] = nil
  else
    lost[#lost + 1] = ARGV[i]
  end
end
-- RETRYCOUNT keeps the delivery count, which a renewal must not change.
for count, ids in pairs(by_count) do
  for i = 1, #ids, 1000 do
    local call = {'XCLAIM', KEYS[1], 'workers', ARGV[1], 0}
    for j = i, math.min(i + 999, #ids) do call[#call + 1] = ids[j] end
    call[#call + 1] = 'RETRYCOUNT'
    call[#call + 1] = count
    call[#call + 1] = 'JUSTID'
    redis.call(unpack(call))
  end
end
local adopted = {}
for id, count in pairs(mine) do
  if idle[id] >= tonumber(ARGV[2]) then take(adopted, KEYS[1], ARGV[1], id, count, KEYS[2]) end
end
return {lost, adopted}
