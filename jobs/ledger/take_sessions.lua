-- Take open sessions that nobody alive holds, to tear them down.
-- ARGV: most jobs, lease of the reaper (ms), longest pause between two tries (ms), most tries
-- Returns {run, index, try, fence and session of each} of every job. A job with a live claim is that attempt's matter;
-- one that was tried too often is not taken again and stays listed in its run's :left.
local most, lease, longest_pause, most_tries = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local now = now_ms()
local taken = {}
for _, holder in ipairs(redis.call('ZRANGEBYSCORE', 'parley:sessions', '-inf', now, 'LIMIT', 0, most)) do
  local run, index = string.match(holder, '^(.*)/(%d+)$')
  local base = run_key(run)
  local key = base .. ':session:' .. index
  local lease_ends = tonumber(redis.call('ZSCORE', base .. ':claims', index) or '0')
  if redis.call('EXISTS', key) == 0 then
    redis.call('ZREM', 'parley:sessions', holder)
    redis.call('ZREM', base .. ':left', index)
  elseif lease_ends > now then
    redis.call('ZADD', 'parley:sessions', lease_ends, holder)
  elseif not redis.call('ZSCORE', base .. ':left', index) then
    -- Its holder died just now: the sweep sends the job again, and its next attempt comes first.
    leave_sessions(run, index, now, now + (redis.call('HEXISTS', base .. ':window', index) == 1 and TAKE_UP_MS or 0))
  else
    local try = redis.call('HINCRBY', key, 'tries', 1)
    if try > most_tries then
      redis.call('ZREM', 'parley:sessions', holder)
    else
      redis.call('ZADD', 'parley:sessions', now + math.max(lease, math.min(longest_pause, lease * 2 ^ (try - 1))), holder)
      local job = {run, tonumber(index), try}
      local sessions = redis.call('HGETALL', key)
      for i = 1, #sessions, 2 do
        if sessions[i] ~= 'tries' then job[#job + 1], job[#job + 2] = sessions[i], sessions[i + 1] end
      end
      taken[#taken + 1] = job
    end
  end
end
return taken
