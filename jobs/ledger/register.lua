-- Enter a run into the ledger, once. ARGV: run, then field and value of each fact; KEYS: none
-- Returns 1 when it was entered now, 0 when it was there with the same input, -1 when it is another run of that name.
local base = run_key(ARGV[1])
local facts = {}
local digest
for i = 2, #ARGV, 2 do
  facts[#facts + 1], facts[#facts + 2] = ARGV[i], ARGV[i + 1]
  if ARGV[i] == 'digest' then digest = ARGV[i + 1] end
end
local known = redis.call('HGET', base, 'digest')
if known and known ~= digest then return -1 end
if not known then
  redis.call('HSET', base, unpack(facts))
  redis.call('HSET', base, 'started_ms', string.format('%.0f', now_ms()))
end
if not redis.call('HGET', base, 'finished_ms') then redis.call('SADD', 'parley:runs', ARGV[1]) end
return known and 0 or 1
