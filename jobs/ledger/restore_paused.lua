-- Enter a paused job that object storage knows, after the ledger was lost.
-- ARGV: run, index, route, key of the stored state, then id, key of its answers ('' = none) and time allowed (ms, 0 =
-- any) of each call. Returns 1 when it was entered, 0 when the ledger knows better.
local run, index = ARGV[1], ARGV[2]
local base = run_key(run)
if redis.call('GETBIT', base .. ':done', index) == 1 then return 0 end
if redis.call('HEXISTS', base .. ':paused', index) == 1 or redis.call('HEXISTS', base .. ':window', index) == 1 then return 0 end
local now = now_ms()
local awaited = base .. ':awaited:' .. index
for i = 5, #ARGV, 3 do
  local allowed = tonumber(ARGV[i + 2])
  local value = allowed > 0 and string.format('?%.0f', now + allowed) or '?'
  if ARGV[i + 1] ~= '' then value = '=' .. ARGV[i + 1] end
  redis.call('HSET', awaited, 'c:' .. ARGV[i], value)
end
redis.call('HSET', awaited, 'key', ARGV[4])
redis.call('HSET', base .. ':paused', index, ARGV[3])
-- Attempts are numbered on from the one that paused, and the next is one that has something to restore.
redis.call('HSETNX', base .. ':tokens', index, tonumber(string.match(ARGV[4], '%-(%d+)%.json%.zst$') or '1'))
settle_waiting(run, index, now)
return 1
