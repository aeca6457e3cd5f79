"""The rules a batch of tool calls passes before anything runs: one rule a file."""
