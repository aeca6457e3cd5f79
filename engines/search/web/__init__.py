"""Searching the web by way of others' search pages and services."""
