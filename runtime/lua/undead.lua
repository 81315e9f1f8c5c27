-- Removes dead jobs for good.
-- KEYS  1 dead  2 dead:jobs  3 dead:ids
-- ARGV  1… death ids
-- Returns how many there were.
local n = 0
for i = 1, #ARGV do
  if remove_dead(KEYS[1], KEYS[2], KEYS[3], ARGV[i]) then n = n + 1 end
end
return n
