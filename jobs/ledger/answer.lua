-- Take answers to calls of a paused job, each at most once; they lie in object storage under one key by now.
-- ARGV: run, index, key of the stored answers (no two callers have one), then the id of each call that they answer
-- Returns {state of the job, then accepted, answered, late or unknown for each call};
-- states: unknown_run, unknown_job, finished, waiting (for more answers), resumed, running (not paused)
local run, index, key = ARGV[1], ARGV[2], ARGV[3]
local base = run_key(run)
local jobs = tonumber(redis.call('HGET', base, 'jobs') or '-1')
if jobs < 0 then return {'unknown_run'} end
if tonumber(index) >= jobs then return {'unknown_job'} end
if redis.call('GETBIT', base .. ':done', index) == 1 then return {'finished'} end
local now = now_ms()
local awaited = base .. ':awaited:' .. index
local outcomes = {'running'}
for i = 4, #ARGV do
  local value = redis.call('HGET', awaited, 'c:' .. ARGV[i])
  if not value then
    outcomes[#outcomes + 1] = 'unknown'
  elseif value == 'late' then
    outcomes[#outcomes + 1] = 'late'
  elseif value == '=' .. key then
    outcomes[#outcomes + 1] = 'accepted'  -- our own call, sent again after a lost answer
  elseif string.sub(value, 1, 1) ~= '?' then
    outcomes[#outcomes + 1] = 'answered'
  elseif value ~= '?' and tonumber(string.sub(value, 2)) <= now then
    redis.call('HSET', awaited, 'c:' .. ARGV[i], 'late')
    outcomes[#outcomes + 1] = 'late'
  else
    redis.call('HSET', awaited, 'c:' .. ARGV[i], '=' .. key)
    outcomes[#outcomes + 1] = 'accepted'
  end
end
if redis.call('HEXISTS', base .. ':paused', index) == 1 then
  outcomes[1] = settle_waiting(run, index, now) and 'waiting' or 'resumed'
end
return outcomes
