-- Records how an entry ends before the ending is carried out, so that whoever takes it over completes it.
-- KEYS  1 stream  2 verdict
-- ARGV  1 consumer  2 entry id  3 the verdict  4 only from this time in ms on, 0 for unconditionally
-- Returns {'set'}, {'early'}, {'stale'} or {'gone'}; {'set', verdict} where an earlier one stands.
local mine = holding(KEYS[1], ARGV[1], ARGV[2], ARGV[2])
if not mine[ARGV[2]] then return {refusal(KEYS[1], ARGV[2])} end
if tonumber(ARGV[4]) > 0 and now_ms() < tonumber(ARGV[4]) then return {'early'} end
redis.call('XCLAIM', KEYS[1], 'workers', ARGV[1], 0, ARGV[2], 'RETRYCOUNT', mine[ARGV[2]], 'JUSTID')
if redis.call('HSETNX', KEYS[2], ARGV[2], ARGV[3]) == 0 then
  return {'set', redis.call('HGET', KEYS[2], ARGV[2])}
end
return {'set'}
