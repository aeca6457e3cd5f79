"""Fixtures of the end-to-end tests."""

from tests.support.object_store import bucket_url, object_store_server

__all__ = ["bucket_url", "object_store_server"]
