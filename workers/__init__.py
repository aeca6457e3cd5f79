"""Celery workers that hold hundreds of conversations each on one event loop."""
