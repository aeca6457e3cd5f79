-- Look once through a run for what died or was lost, and send it again.
-- ARGV: run, who sweeps, lease of the sweep (ms), grace for a message under way (ms), lease of a permit (ms), most jobs a pass
-- Returns {swept (0: somebody else sweeps), claims expired, messages lost, jobs due, permits handed over}
local run, who = ARGV[1], ARGV[2]
local grace, permit_lease, most = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local base = run_key(run)
if redis.call('EXISTS', base) == 0 then return {0, 0, 0, 0, 0} end
local holder = redis.call('GET', base .. ':sweeper')
if holder and holder ~= who then return {0, 0, 0, 0, 0} end
redis.call('SET', base .. ':sweeper', who, 'PX', ARGV[3])
local now = now_ms()
local window = base .. ':window'
local expired, lost, due, handed = 0, 0, 0, 0

for _, index in ipairs(redis.call('ZRANGEBYSCORE', base .. ':claims', '-inf', now, 'LIMIT', 0, most)) do
  redis.call('ZREM', base .. ':claims', index)
  redis.call('HDEL', base .. ':owners', index)
  redis.call('HINCRBY', base .. ':strikes', index, 1)
  local route = redis.call('HGET', window, index)
  local ends = leave_sessions(run, index, now, now + (route and TAKE_UP_MS or 0))
  if route then
    keep_permits(base, run, index, route, ends or now + permit_lease)  -- the next attempt takes them over
    send(run, index, route, now, true)
  end
  expired = expired + 1
end

for _, index in ipairs(redis.call('ZRANGEBYSCORE', base .. ':later', '-inf', now, 'LIMIT', 0, most)) do
  redis.call('ZREM', base .. ':later', index)
  local route = redis.call('HGET', window, index)
  if route then send(run, index, route, now, false) end
  due = due + 1
end

-- Paused jobs: those whose calls are late go on without; a cancelled run waits for nobody.
local cancelled = redis.call('HEXISTS', base, 'cancel_requested') == 1
local late = cancelled and redis.call('HKEYS', base .. ':paused')
  or redis.call('ZRANGEBYSCORE', base .. ':deadlines', '-inf', now, 'LIMIT', 0, most)
for i = 1, math.min(#late, most) do
  if cancelled then
    local awaited = base .. ':awaited:' .. late[i]
    for _, field in ipairs(redis.call('HKEYS', awaited)) do
      if string.sub(field, 1, 2) == 'c:' and string.sub(redis.call('HGET', awaited, field), 1, 1) == '?' then
        redis.call('HSET', awaited, field, 'late')
      end
    end
  end
  settle_waiting(run, late[i], now)
end

-- Queues are first in, first out: what was sent before the message that will be taken next, and is not claimed,
-- was taken and lost.
local routes = tonumber(redis.call('HGET', base, 'routes') or '1')
for route = 0, routes - 1 do
  local queue = redis.call('HGET', base, 'queue:' .. route)
  local before = now - grace
  local oldest = queue and redis.call('LINDEX', queue, -1)
  if oldest then before = math.min(before, tonumber(string.match(oldest, '"delivery_tag": ?"(%d+)%-') or '0') - 1) end
  for _, index in ipairs(redis.call('ZRANGEBYSCORE', base .. ':queued:' .. route, '-inf', before, 'LIMIT', 0, most)) do
    if redis.call('GETBIT', base .. ':done', index) == 1 or not redis.call('HEXISTS', window, index) then
      redis.call('ZREM', base .. ':queued:' .. route, index)
    else
      send(run, index, tostring(route), now, false)
      lost = lost + 1
    end
  end
  for _, namespace in ipairs(namespaces_of(base, tostring(route))) do
    handed = handed + hand_over(namespace, now, permit_lease)
  end
end
-- A few window entries a look: one that is in no set at all (whatever made it so) is sent again as well.
local scan = redis.call('HSCAN', window, redis.call('HGET', base, 'scan') or '0', 'COUNT', 200)
redis.call('HSET', base, 'scan', scan[1])
for i = 1, #scan[2], 2 do
  local index, route = scan[2][i], scan[2][i + 1]
  if not redis.call('ZSCORE', base .. ':queued:' .. route, index) and not redis.call('ZSCORE', base .. ':claims', index)
    and not redis.call('ZSCORE', base .. ':later', index) and not is_parked(base, run, index, route) then
    send(run, index, route, now, false)
    lost = lost + 1
  end
end
return {1, expired, lost, due, handed}
