-- What every script of the ledger shares. Prepended to each of them.
--
-- Keys of a run R (all below parley:run:R):
--   (the hash itself)    facts of the run, its counters, and per route r: queue:r, namespaces:r, message:r
--   :done                bitmap, one bit a job
--   :window              hash   index -> route          every job that was fed and is not settled
--   :queued:r            zset   index -> sent at (ms)   in the broker's list of route r, or lost on its way
--   :claims              zset   index -> lease ends (ms)
--   :owners              hash   index -> fence ("token:nonce") of the live claim
--   :tokens              hash   index -> last token given (attempt number)
--   :strikes             hash   index -> attempts that were lost or failed
--   :later               zset   index -> due at (ms)
--   :checkpoint:i        list   the deltas of job i
-- Keys of a namespace N (below parley:ns:N): :limit (string), :held (zset run/index -> until ms),
-- :parked (zset run/index -> place in the line), :places (counter)
-- A fed job is in exactly one of queued, claims, later, or some namespace's parked list.

local function now_ms()
  local t = redis.call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end

local function run_key(run) return 'parley:run:' .. run end

-- Put one message into the queue of its route. `front` lets it be taken next; its stamp is then 0, so that the
-- search for lost messages does not take the older ones behind it for lost.
local function send(run, index, route, now, front)
  local base = run_key(run)
  local facts = redis.call('HMGET', base, 'queue:' .. route, 'message:' .. route)
  if not facts[1] then return false end
  local id = string.format('%s.%06d', run, index)
  local sent = front and '0' or string.format('%.0f', now)
  local message = string.gsub(facts[2], '@(%u+)@', {INDEX = tostring(index), TASK = id, SENT = sent})
  redis.call('ZADD', base .. ':queued:' .. route, now, index)
  redis.call(front and 'RPUSH' or 'LPUSH', facts[1], message)
  return true
end

local function namespaces_of(base, route)
  if route == '0' then return {} end
  return cjson.decode(redis.call('HGET', base, 'namespaces:' .. route) or '[]')
end

-- Give free permits of a namespace to the first parked jobs and send those on. Returns how many.
local function hand_over(namespace, now, grace)
  local key = 'parley:ns:' .. namespace
  redis.call('ZREMRANGEBYSCORE', key .. ':held', '-inf', now)
  local limit = tonumber(redis.call('GET', key .. ':limit') or '1')
  local handed = 0
  while redis.call('ZCARD', key .. ':held') < limit do
    local holder = redis.call('ZPOPMIN', key .. ':parked')[1]
    if not holder then break end
    local run, index = string.match(holder, '^(.*)/(%d+)$')
    local base = run_key(run)
    local route = redis.call('HGET', base .. ':window', index)
    -- A parked job whose run is gone, or that somebody else finished, is skipped.
    if route and not redis.call('ZSCORE', base .. ':claims', index) then
      redis.call('ZADD', key .. ':held', now + grace, holder)
      send(run, index, route, now, true)
      handed = handed + 1
    end
  end
  return handed
end

local function release_permits(base, run, index, route, now, grace)
  for _, namespace in ipairs(namespaces_of(base, route)) do
    redis.call('ZREM', 'parley:ns:' .. namespace .. ':held', run .. '/' .. index)
    hand_over(namespace, now, grace)
  end
end

-- Keep the permits that a job holds (not those it lacks) until the given time.
local function keep_permits(base, run, index, route, till)
  for _, namespace in ipairs(namespaces_of(base, route)) do
    redis.call('ZADD', 'parley:ns:' .. namespace .. ':held', 'XX', till, run .. '/' .. index)
  end
end

local function is_parked(base, run, index, route)
  for _, namespace in ipairs(namespaces_of(base, route)) do
    if redis.call('ZSCORE', 'parley:ns:' .. namespace .. ':parked', run .. '/' .. index) then return true end
  end
  return false
end

local function park(namespace, holder)
  local key = 'parley:ns:' .. namespace
  redis.call('ZADD', key .. ':parked', 'NX', redis.call('INCR', key .. ':places'), holder)
end
