"""Engines that look documents up: files, lists, Elasticsearch, the web. One place to search a file."""
