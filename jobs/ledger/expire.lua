-- End the leases of claims whose process is known to be dead, so that the next sweep sends their jobs again.
-- ARGV: run, prefix of the nonces ('' for every claim). Returns how many.
local base = run_key(ARGV[1])
local owners = redis.call('HGETALL', base .. ':owners')
local ended = 0
for i = 1, #owners, 2 do
  local nonce = string.match(owners[i + 1], '^%d+:(.*)$') or ''
  if string.sub(nonce, 1, #ARGV[2]) == ARGV[2] and redis.call('ZSCORE', base .. ':claims', owners[i]) then
    redis.call('ZADD', base .. ':claims', 0, owners[i])
    ended = ended + 1
  end
end
redis.call('DEL', base .. ':sweeper')  -- who swept may be dead as well
return ended
