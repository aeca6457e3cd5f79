"""Tools and what answers their calls: definitions, registry, sessions and engines."""
