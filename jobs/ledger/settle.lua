-- Settle a job whose record is durable: done bit, counters, claim and checkpoint dropped, permits handed on.
-- ARGV: run, index, fence, status, input tokens, output tokens, model calls, tool calls, grace (ms)
-- Returns settled, done (it was already) or fenced.
local run, index, fence, status = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local base = run_key(run)
if redis.call('EXISTS', base) == 0 then return 'fenced' end
if redis.call('GETBIT', base .. ':done', index) == 1 then return 'done' end
if redis.call('HGET', base .. ':owners', index) ~= fence then return 'fenced' end
local now = now_ms()
local route = redis.call('HGET', base .. ':window', index) or '0'

redis.call('SETBIT', base .. ':done', index, 1)
local settled = redis.call('HINCRBY', base, 'settled', 1)
redis.call('HINCRBY', base, status, 1)
for i, counter in ipairs({'input_tokens', 'output_tokens', 'model_calls', 'tool_calls'}) do
  local amount = ARGV[4 + i]
  if amount ~= '0' then redis.call('HINCRBY', base, counter, amount) end
end
redis.call('ZREM', base .. ':claims', index)
redis.call('ZREM', base .. ':later', index)
redis.call('ZREM', base .. ':queued:' .. route, index)
redis.call('HDEL', base .. ':window', index)
redis.call('HDEL', base .. ':owners', index)
redis.call('HDEL', base .. ':tokens', index)
redis.call('HDEL', base .. ':strikes', index)
redis.call('UNLINK', base .. ':checkpoint:' .. index, base .. ':awaited:' .. index)
release_permits(base, run, index, route, now, tonumber(ARGV[9]))
if settled == tonumber(redis.call('HGET', base, 'jobs')) then
  redis.call('HSET', base, 'finished_ms', string.format('%.0f', now))
  redis.call('SREM', 'parley:runs', run)
  redis.call('PUBLISH', 'parley:paused:' .. run, 'finished')  -- nobody needs to wait for a paused job any more
end
return 'settled'
