"""Native shapes of the providers: names, tool definitions, calls and results as they travel."""
