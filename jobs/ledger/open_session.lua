-- Note a session of the live attempt that is open, or about to be, on a backend.
-- ARGV: run, index, fence, the session
-- Returns {answer (1: noted, 0: the claim is lost), whether the quarantine of the others is over, then fence and session
-- of each other one of the job that may be open}
local run, index, fence = ARGV[1], ARGV[2], ARGV[3]
local base = run_key(run)
local lease_ends = redis.call('ZSCORE', base .. ':claims', index)
if not lease_ends or redis.call('HGET', base .. ':owners', index) ~= fence then return {0, 0} end
local key = base .. ':session:' .. index
redis.call('HSET', key, fence, ARGV[4])
redis.call('ZADD', 'parley:sessions', lease_ends, run .. '/' .. index)
local quarantine_ends = tonumber(redis.call('ZSCORE', base .. ':left', index) or '0')
local answer = {1, quarantine_ends <= now_ms() and 1 or 0}
local sessions = redis.call('HGETALL', key)
for i = 1, #sessions, 2 do
  if sessions[i] ~= fence and sessions[i] ~= 'tries' then
    answer[#answer + 1], answer[#answer + 2] = sessions[i], sessions[i + 1]
  end
end
return answer
