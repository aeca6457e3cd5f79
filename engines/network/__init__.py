"""The way to servers of others, for every engine and loader: checked addresses, bounded answers, bound credentials."""
