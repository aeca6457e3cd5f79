-- Keep one result in the cache of all workers. ARGV: digest of its key, value, time to live (ms), most bytes of them all
-- Returns how many bytes are kept. Of the values that are there, those that expire first make room.
local digest, value, ttl, most = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local kept, bytes = 'parley:cache', 'parley:cache:bytes'
local now = now_ms()

local function drop(member)
  local name, size = string.match(member, '^(%x+):(%d+)$')
  redis.call('UNLINK', kept .. ':' .. name)
  redis.call('ZREM', kept, member)
  return redis.call('DECRBY', bytes, size)
end

local before = redis.call('STRLEN', kept .. ':' .. digest)
if before > 0 and redis.call('ZSCORE', kept, digest .. ':' .. before) then drop(digest .. ':' .. before) end
for _, member in ipairs(redis.call('ZRANGEBYSCORE', kept, '-inf', now, 'LIMIT', 0, 100)) do drop(member) end
redis.call('SET', kept .. ':' .. digest, value, 'PX', ttl)
local is_new = redis.call('ZADD', kept, now + ttl, digest .. ':' .. #value)
local total = redis.call('INCRBY', bytes, is_new * #value)
while total > most do
  local first = redis.call('ZRANGE', kept, 0, 0)[1]
  if not first then break end
  total = drop(first)
end
return total
