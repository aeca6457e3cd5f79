-- Claim a job: the right of one attempt to work on it.
-- ARGV: run, index, nonce of the attempt, lease (ms), quarantine (ms)
-- Returns {outcome, token, strikes, cancelled}; outcomes: granted, exhausted, done, busy, parked, unknown
local run, index, nonce = ARGV[1], ARGV[2], ARGV[3]
local lease, quarantine = tonumber(ARGV[4]), tonumber(ARGV[5])
local base = run_key(run)
local now = now_ms()

local facts = redis.call('HMGET', base, 'jobs', 'cancel_requested', 'max_attempts')
if not facts[1] then return {'unknown', 0, 0, 0} end
if tonumber(index) >= tonumber(facts[1]) then return {'unknown', 0, 0, 0} end
if redis.call('GETBIT', base .. ':done', index) == 1 then return {'done', 0, 0, 0} end

local lease_ends = redis.call('ZSCORE', base .. ':claims', index)
if lease_ends then
  local fence = redis.call('HGET', base .. ':owners', index)
  local token = tonumber(redis.call('HGET', base .. ':tokens', index))
  if fence == token .. ':' .. nonce then  -- our own call, sent again after a lost answer
    return {'granted', token, tonumber(redis.call('HGET', base .. ':strikes', index) or '0'), facts[2] and 1 or 0}
  end
  if tonumber(lease_ends) > now then return {'busy', 0, 0, 0} end
  redis.call('HINCRBY', base .. ':strikes', index, 1)  -- the holder died: its attempt was lost
  redis.call('ZREM', base .. ':claims', index)
  leave_sessions(run, index, now, now + TAKE_UP_MS)
end

local route = redis.call('HGET', base .. ':window', index)
if not route then return {'unknown', 0, 0, 0} end  -- never fed: a forged or very old message starts nothing

local strikes = tonumber(redis.call('HGET', base .. ':strikes', index) or '0')
local exhausted = strikes >= tonumber(facts[3] or '3')
local namespaces = (exhausted or facts[2]) and {} or namespaces_of(base, route)
local holder = run .. '/' .. index
-- Permits are taken in the sorted order of their namespaces, so no two jobs wait for one another.
for _, namespace in ipairs(namespaces) do
  local key = 'parley:ns:' .. namespace
  if not redis.call('ZSCORE', key .. ':held', holder) then
    redis.call('ZREMRANGEBYSCORE', key .. ':held', '-inf', now)
    local limit = tonumber(redis.call('GET', key .. ':limit') or '1')
    if redis.call('ZCARD', key .. ':held') < limit and redis.call('ZCARD', key .. ':parked') == 0
      and redis.call('EXISTS', 'parley:quiet') == 0 then
      redis.call('ZADD', key .. ':held', now + lease + quarantine, holder)
    else
      park(namespace, holder)
      keep_permits(base, run, index, route, now + 86400000)  -- those it has wait with it
      redis.call('ZREM', base .. ':queued:' .. route, index)
      return {'parked', 0, strikes, 0}
    end
  end
end

local token = redis.call('HINCRBY', base .. ':tokens', index, 1)
redis.call('HSET', base .. ':owners', index, token .. ':' .. nonce)
redis.call('ZADD', base .. ':claims', now + lease, index)
redis.call('ZREM', base .. ':queued:' .. route, index)
redis.call('ZREM', base .. ':later', index)
keep_permits(base, run, index, route, now + lease + quarantine)
return {exhausted and 'exhausted' or 'granted', token, strikes, facts[2] and 1 or 0}
