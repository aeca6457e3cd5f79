-- Append one delta to a job's checkpoint, fenced by the claim.
-- ARGV: run, index, fence, position of the delta in the list, delta
-- Returns the length of the list, or -1 for a claim that is lost. The same delta sent twice is kept once.
local base = run_key(ARGV[1])
if redis.call('HGET', base .. ':owners', ARGV[2]) ~= ARGV[3] then return -1 end
local key = base .. ':checkpoint:' .. ARGV[2]
local length = redis.call('LLEN', key)
local position = tonumber(ARGV[4])
if length > position then return length end
if length < position then return -1 end  -- deltas are missing: a restart of the broker lost them with the claim
return redis.call('RPUSH', key, ARGV[5])
