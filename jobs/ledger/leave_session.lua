-- Note a session whose teardown failed, also where the ledger forgot it meanwhile. ARGV: run, index, fence, the session
local run, index = ARGV[1], ARGV[2]
redis.call('HSET', run_key(run) .. ':session:' .. index, ARGV[3], ARGV[4])
local now = now_ms()
leave_sessions(run, index, now, now)
return 1
