-- Forget sessions of a job that are torn down, and hand its permits on where it held them for those sessions only.
-- ARGV: run, index, grace (ms), number of fences, the fences, the namespaces
-- Returns how many sessions of the job may still be open, those of a live attempt among them.
local run, index = ARGV[1], ARGV[2]
local base, now = run_key(run), now_ms()
local key, holder = base .. ':session:' .. index, run .. '/' .. index
local last_fence = 4 + tonumber(ARGV[4])
redis.call('HDEL', key, unpack(ARGV, 5, last_fence))
local open = redis.call('HLEN', key) - redis.call('HEXISTS', key, 'tries')
local is_alive = redis.call('ZSCORE', base .. ':claims', index)
local of_the_living = is_alive and redis.call('HEXISTS', key, redis.call('HGET', base .. ':owners', index) or '') or 0
if open > of_the_living then return open end
local was_left = redis.call('ZREM', base .. ':left', index) == 1
if open > 0 then
  redis.call('HDEL', key, 'tries')
  return open
end
redis.call('DEL', key)
redis.call('ZREM', 'parley:sessions', holder)
-- A live attempt keeps its permits, and one that was sent again and is about to be claimed takes them over.
local route = redis.call('HGET', base .. ':window', index)
local is_waiting = route and redis.call('ZSCORE', base .. ':queued:' .. route, index)
if was_left and not is_waiting and not is_alive then
  for i = last_fence + 1, #ARGV do
    if redis.call('ZREM', 'parley:ns:' .. ARGV[i] .. ':held', holder) == 1 then hand_over(ARGV[i], now, tonumber(ARGV[3])) end
  end
end
return 0
