-- Return a result of the cache of all workers, nil when there is none. ARGV: digest of its key
return redis.call('GET', 'parley:cache:' .. ARGV[1])
