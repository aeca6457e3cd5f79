"""Measures what Parley costs, one file a benchmark; `python -m benchmarks` runs them."""
