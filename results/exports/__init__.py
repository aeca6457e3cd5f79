"""Records in the shapes other programs read; one format a file, all of them listed in `kinds`."""
