"""What producers and workers share: the job, the run, the ledger, the queues and the Celery app."""
