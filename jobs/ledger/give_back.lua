-- Give a claim back without settling its job; its checkpoint stays.
-- ARGV: run, index, fence ('' for a job that was taken from the queue but not claimed), delay (ms; 0 = run it next),
--       strikes to add, grace (ms)
-- Returns given or fenced.
local run, index, fence = ARGV[1], ARGV[2], ARGV[3]
local delay, strikes = tonumber(ARGV[4]), tonumber(ARGV[5])
local base = run_key(run)
local route = redis.call('HGET', base .. ':window', index)
if not route then return 'fenced' end
if fence == '' then
  if redis.call('ZSCORE', base .. ':claims', index) then return 'fenced' end
elseif redis.call('HGET', base .. ':owners', index) ~= fence then
  return 'fenced'
end
local now = now_ms()
redis.call('ZREM', base .. ':claims', index)
redis.call('HDEL', base .. ':owners', index)
if strikes > 0 then redis.call('HINCRBY', base .. ':strikes', index, strikes) end
if delay == 0 then
  send(run, index, route, now, true)
else
  redis.call('ZADD', base .. ':later', now + delay, index)
  redis.call('ZREM', base .. ':queued:' .. route, index)
end
-- The next attempt takes the session up or tears it down, unless that is too far away.
local look_at = delay + TAKE_UP_MS < SESSION_QUARANTINE_MS and now + delay + TAKE_UP_MS or now
if fence ~= '' then release_permits(base, run, index, route, now, tonumber(ARGV[6]), look_at) end
return 'given'
