"""The ledger: what a cluster remembers of its jobs, in Redis, as small classes over Lua scripts."""

from jobs.ledger.ledger import Ledger

__all__ = ["Ledger"]
