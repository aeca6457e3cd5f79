-- Keep the first deltas of a job's checkpoint, those that are good. ARGV: run, index, fence, how many
-- Returns 1, or 0 for a claim that is lost.
local base = run_key(ARGV[1])
if redis.call('HGET', base .. ':owners', ARGV[2]) ~= ARGV[3] then return 0 end
local key = base .. ':checkpoint:' .. ARGV[2]
if ARGV[4] == '0' then redis.call('DEL', key) else redis.call('LTRIM', key, 0, tonumber(ARGV[4]) - 1) end
return 1
