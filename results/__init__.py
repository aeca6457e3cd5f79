"""Records, the shards they are committed to, the stores that keep them and the ways to read them again."""
