-- Let a job wait for answers from outside; its state is durable in object storage by now. It gives up its claim, its
-- permits, its checkpoint and its place in the window.
-- ARGV: run, index, fence, key of the stored state, grace (ms), then id and time allowed (ms, 0 = any) of each call
-- Returns paused, resumed (every call was answered meanwhile: nobody waits), or fenced.
local run, index, fence, key = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local base = run_key(run)
local awaited = base .. ':awaited:' .. index
if redis.call('HGET', base .. ':owners', index) ~= fence then
  -- Our own call, sent again after a lost answer? A key names the attempt that wrote it.
  if redis.call('HGET', awaited, 'key') == key then
    return redis.call('HEXISTS', base .. ':paused', index) == 1 and 'paused' or 'resumed'
  end
  return 'fenced'
end
local now = now_ms()
local route = redis.call('HGET', base .. ':window', index) or '0'
for i = 6, #ARGV, 2 do
  local allowed = tonumber(ARGV[i + 1])
  local value = allowed > 0 and string.format('?%.0f', now + allowed) or '?'
  redis.call('HSETNX', awaited, 'c:' .. ARGV[i], value)  -- one that was answered already stays so
end
redis.call('HSET', awaited, 'key', key)
redis.call('ZREM', base .. ':claims', index)
redis.call('ZREM', base .. ':later', index)
redis.call('HDEL', base .. ':owners', index)
redis.call('HDEL', base .. ':window', index)
redis.call('UNLINK', base .. ':checkpoint:' .. index)
redis.call('HSET', base .. ':paused', index, route)
release_permits(base, run, index, route, now, tonumber(ARGV[5]))
if not settle_waiting(run, index, now) then return 'resumed' end
redis.call('PUBLISH', 'parley:paused:' .. run, index)
return 'paused'
