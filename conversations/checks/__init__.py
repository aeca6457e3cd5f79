"""What a finished conversation must be to be kept: one check a file, listed in `kinds`."""
