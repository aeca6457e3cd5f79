-- Feed jobs into the window of a run: each is sent once; what is done or in the window already is passed over.
-- ARGV: run, token of the feeder, then index and route of each job
-- Returns how many were sent, or -1 when another feeder holds the run.
local run = ARGV[1]
local base = run_key(run)
if redis.call('GET', base .. ':feeder') ~= ARGV[2] then return -1 end
local now = now_ms()
local stamp = string.format('%.0f', now)
local sent = 0
local messages, scores = {}, {}   -- by route
local facts = {}
for i = 3, #ARGV, 2 do
  local index, route = ARGV[i], ARGV[i + 1]
  if redis.call('GETBIT', base .. ':done', index) == 0 and redis.call('HEXISTS', base .. ':paused', index) == 0
    and redis.call('HSETNX', base .. ':window', index, route) == 1 then
    local fact = facts[route]
    if not fact then
      fact = redis.call('HMGET', base, 'queue:' .. route, 'message:' .. route)
      facts[route], messages[route], scores[route] = fact, {}, {}
    end
    local id = string.format('%s.%06d', run, index)
    local list = messages[route]
    list[#list + 1] = string.gsub(fact[2], '@(%u+)@', {INDEX = index, TASK = id, SENT = stamp})
    local pairs_ = scores[route]
    pairs_[#pairs_ + 1] = now
    pairs_[#pairs_ + 1] = index
    sent = sent + 1
  end
end
for route, list in pairs(messages) do
  for first = 1, #list, 1000 do
    local last = math.min(first + 999, #list)
    redis.call('LPUSH', facts[route][1], unpack(list, first, last))
    redis.call('ZADD', base .. ':queued:' .. route, unpack(scores[route], 2 * first - 1, 2 * last))
  end
end
return sent
