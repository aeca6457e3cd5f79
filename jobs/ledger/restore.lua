-- Enter what object storage says is done, after the ledger was lost. ARGV: run, then index, status, input tokens,
-- output tokens, model calls, tool calls of each record. Returns how many were new.
local base = run_key(ARGV[1])
local new = 0
for i = 2, #ARGV, 6 do
  if redis.call('SETBIT', base .. ':done', ARGV[i], 1) == 0 then
    redis.call('HINCRBY', base, 'settled', 1)
    redis.call('HINCRBY', base, ARGV[i + 1], 1)
    redis.call('HINCRBY', base, 'input_tokens', ARGV[i + 2])
    redis.call('HINCRBY', base, 'output_tokens', ARGV[i + 3])
    redis.call('HINCRBY', base, 'model_calls', ARGV[i + 4])
    redis.call('HINCRBY', base, 'tool_calls', ARGV[i + 5])
    new = new + 1
  end
end
if tonumber(redis.call('HGET', base, 'settled') or '0') == tonumber(redis.call('HGET', base, 'jobs') or '-1') then
  redis.call('HSETNX', base, 'finished_ms', string.format('%.0f', now_ms()))
  redis.call('SREM', 'parley:runs', ARGV[1])
end
return new
