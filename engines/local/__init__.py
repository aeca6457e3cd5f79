"""Functions of the user's own modules as tools."""
