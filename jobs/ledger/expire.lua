-- End the claims of processes that are known to be dead, so that their jobs run again without waiting for the lease.
-- ARGV: run, prefix of the nonces. Returns how many claims were ended.
-- With a prefix one process died by itself: the next sweep counts a strike against each of its jobs, as for any lost
-- attempt. Without one the whole run was ended from outside, and no job is to blame: they are sent again right here.
local run, prefix = ARGV[1], ARGV[2]
local base = run_key(run)
local owners = redis.call('HGETALL', base .. ':owners')
local now = now_ms()
local ended = 0
for i = 1, #owners, 2 do
  local index, nonce = owners[i], string.match(owners[i + 1], '^%d+:(.*)$') or ''
  if string.sub(nonce, 1, #prefix) == prefix and redis.call('ZSCORE', base .. ':claims', index) then
    if prefix ~= '' then
      redis.call('ZADD', base .. ':claims', 0, index)
    else
      redis.call('ZREM', base .. ':claims', index)
      redis.call('HDEL', base .. ':owners', index)
      leave_sessions(run, index, now, now + TAKE_UP_MS)
      local route = redis.call('HGET', base .. ':window', index)
      if route then send(run, index, route, now, true) end
    end
    ended = ended + 1
  end
end
redis.call('DEL', base .. ':sweeper')  -- who swept may be dead as well
return ended
