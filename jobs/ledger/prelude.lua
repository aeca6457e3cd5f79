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
--   :session:i           hash   fence -> session of that attempt that may be open on a backend; tries -> of the reaper
--   :left                zset   index -> quarantine ends (ms)  jobs whose sessions outlived their holder
--   :paused              hash   index -> route           jobs that wait for answers from outside
--   :awaited:i           hash   key -> of the stored state of job i; c:ID -> a call of it: '?' (waits, '?ms': at most
--                               so long), '=key' (answered; where the answers are stored), 'late' (its time was over)
--   :deadlines           zset   index -> when the first of its calls is late (ms)
-- Keys of a namespace N (below parley:ns:N): :limit (string), :held (zset run/index -> until ms),
-- :parked (zset run/index -> place in the line), :places (counter)
-- parley:sessions is a zset of all runs: run/index -> when the reaper looks at the job's open sessions next (ms).
-- parley:quiet exists while no permit is given out, after the ledger was lost.
-- A fed job is in exactly one of queued, claims, later, or some namespace's parked list; a paused one in none.

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

-- A permit stays with a dead holder's open session at most this long from when the ledger notices the death (a lease
-- and a sweep later), so that it is free within 180 s. The job's next attempt has the first while to take the session
-- up or tear it down; after that the reaper does.
local SESSION_QUARANTINE_MS, TAKE_UP_MS = 110000, 30000

-- Note that nobody holds a job's open sessions any more. Returns when their quarantine ends, nil when there are none.
local function leave_sessions(run, index, now, look_at)
  local base = run_key(run)
  if redis.call('EXISTS', base .. ':session:' .. index) == 0 then return nil end
  redis.call('ZADD', base .. ':left', 'NX', now + SESSION_QUARANTINE_MS, index)
  redis.call('ZADD', 'parley:sessions', look_at, run .. '/' .. index)
  return tonumber(redis.call('ZSCORE', base .. ':left', index))
end

-- Give free permits of a namespace to the first parked jobs and send those on. Returns how many.
local function hand_over(namespace, now, grace)
  local key = 'parley:ns:' .. namespace
  redis.call('ZREMRANGEBYSCORE', key .. ':held', '-inf', now)
  if redis.call('EXISTS', 'parley:quiet') == 1 then return 0 end
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

-- Keep the permits that a job holds (not those it lacks) until the given time.
local function keep_permits(base, run, index, route, till)
  for _, namespace in ipairs(namespaces_of(base, route)) do
    redis.call('ZADD', 'parley:ns:' .. namespace .. ':held', 'XX', till, run .. '/' .. index)
  end
end

-- Give a job's permits back; with sessions of it still open they stay in quarantine until those are torn down.
local function release_permits(base, run, index, route, now, grace, look_at)
  local ends = leave_sessions(run, index, now, look_at or now)
  if ends and ends > now then return keep_permits(base, run, index, route, ends) end
  for _, namespace in ipairs(namespaces_of(base, route)) do
    redis.call('ZREM', 'parley:ns:' .. namespace .. ':held', run .. '/' .. index)
    hand_over(namespace, now, grace)
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

-- Look at the calls of a paused job: mark those whose time is over, and send the job when none waits any more.
-- Returns whether it still waits.
local function settle_waiting(run, index, now)
  local base = run_key(run)
  local awaited = base .. ':awaited:' .. index
  local calls = redis.call('HGETALL', awaited)
  local waits, first = false, nil
  for i = 1, #calls, 2 do
    local value = calls[i + 1]
    if string.sub(calls[i], 1, 2) == 'c:' and string.sub(value, 1, 1) == '?' then
      local ends = tonumber(string.sub(value, 2))
      if ends and ends <= now then
        redis.call('HSET', awaited, calls[i], 'late')
      else
        waits = true
        if ends and (not first or ends < first) then first = ends end
      end
    end
  end
  if waits then
    if first then
      redis.call('ZADD', base .. ':deadlines', first, index)
    else
      redis.call('ZREM', base .. ':deadlines', index)
    end
    return true
  end
  local route = redis.call('HGET', base .. ':paused', index)
  redis.call('HDEL', base .. ':paused', index)
  redis.call('ZREM', base .. ':deadlines', index)
  if route then
    redis.call('HSET', base .. ':window', index, route)
    send(run, index, route, now, true)
  end
  return false
end
