"""A model that plays the tools."""
