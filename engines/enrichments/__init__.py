"""What is found out about the tools when they are loaded: one enrichment a file, listed in `kinds`."""
