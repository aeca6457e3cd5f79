"""Where tool definitions come from: one loader a file, listed in `kinds`."""
