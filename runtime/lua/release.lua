-- Hands entries back: they go to the reserved consumer 'released', with their count kept, for any worker's next tick.
-- KEYS  1 stream  2 workers
-- ARGV  1 consumer  2 'some': only the ids that follow; 'rest': all that the consumer holds but those that follow;
--       'leave': all, and the consumer is removed  3… entry ids
-- Returns how many were handed back.
local mine = holding(KEYS[1], ARGV[1], '-', '+')
local back = {}
if ARGV[2] == 'some' then
  for i = 3, #ARGV do
    if mine[ARGV[i]] then back[ARGV[i]] = mine[ARGV[i]] end
  end
else
  back = mine
  for i = 3, #ARGV do back[ARGV[i]] = nil end
end
local n = 0
for id, count in pairs(back) do
  redis.call('XCLAIM', KEYS[1], 'workers', 'released', 0, id, 'RETRYCOUNT', count, 'JUSTID')
  n = n + 1
end
if ARGV[2] == 'leave' then
  redis.call('HDEL', KEYS[2], ARGV[1])
  if #redis.pcall('XPENDING', KEYS[1], 'workers', '-', '+', 1, ARGV[1]) == 0 then
    redis.pcall('XGROUP', 'DELCONSUMER', KEYS[1], 'workers', ARGV[1])
  end
end
return n
