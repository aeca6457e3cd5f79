-- Renew the claims of one process on the jobs of one run, and the permits that go with them.
-- ARGV: run, lease (ms), quarantine (ms), then index and fence of each claim
-- Returns {cancelled, index of each claim that is lost…}
local run, lease, quarantine = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local base = run_key(run)
local now = now_ms()
local answer = {redis.call('HEXISTS', base, 'cancel_requested')}
for i = 4, #ARGV, 2 do
  local index, fence = ARGV[i], ARGV[i + 1]
  if redis.call('HGET', base .. ':owners', index) == fence and redis.call('ZSCORE', base .. ':claims', index) then
    redis.call('ZADD', base .. ':claims', now + lease, index)
    local route = redis.call('HGET', base .. ':window', index)
    if route and route ~= '0' then keep_permits(base, run, index, route, now + lease + quarantine) end
  else
    answer[#answer + 1] = tonumber(index)
  end
end
return answer
