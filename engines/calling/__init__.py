"""What stands around one call of a tool: validation, deadline, retries, faults, kept results."""
