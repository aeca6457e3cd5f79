"""Plans: calls that a model writes down before any is made, checked, and carried out one after the other."""
