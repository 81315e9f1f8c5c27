-- Ends entries whose endings are recorded: acknowledges and deletes those that the consumer still holds.
-- KEYS  1 stream
-- ARGV  1 consumer  2 smallest id  3 largest id  4… entry ids
-- Returns the ids that another consumer holds now.
local mine = holding(KEYS[1], ARGV[1], ARGV[2], ARGV[3])
local done, stale = {}, {}
for i = 4, #ARGV do
  if mine[ARGV[i]] then
    done[#done + 1] = ARGV[i]
  elseif refusal(KEYS[1], ARGV[i]) == 'stale' then
    stale[#stale + 1] = ARGV[i]
  end
end
for i = 1, #done, 1000 do
  local last = math.min(i + 999, #done)
  redis.call('XACK', KEYS[1], 'workers', unpack(done, i, last))
  redis.call('XDEL', KEYS[1], unpack(done, i, last))
end
return stale
