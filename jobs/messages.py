"""The message of a job as kombu's Redis transport and Celery's protocol 2 read it: ids and nothing else."""

import orjson

from jobs.celery_app import TASK_NAME
from jobs.routing import Route


def message_template(run_id: str, route: Route, queue: str) -> bytes:
    """Return a message with three blanks that the ledger's scripts fill: @INDEX@, @TASK@ and @SENT@ (Unix ms).

    A script can so send any job of the run again without keeping its message. The body is plain JSON (no base64),
    the delivery tag begins with the time of sending: queues are first in, first out, and the search for lost
    messages compares with the oldest one that still waits.
    """
    body = orjson.dumps(
        [[run_id, "@INDEX@", route], {}, {"callbacks": None, "errbacks": None, "chain": None, "chord": None}]
    )
    message = {
        "body": body.replace(b'"@INDEX@"', b"@INDEX@").decode(),
        "content-encoding": "utf-8",
        "content-type": "application/json",
        "headers": {
            "lang": "py",
            "task": TASK_NAME,
            "id": "@TASK@",
            "shadow": None,
            "eta": None,
            "expires": None,
            "group": None,
            "group_index": None,
            "retries": 0,
            "timelimit": [None, None],
            "root_id": "@TASK@",
            "parent_id": None,
            "argsrepr": "@TASK@",
            "kwargsrepr": "",
            "origin": "parley",
            "ignore_result": True,
            "replaced_task_nesting": 0,
            "stamped_headers": None,
            "stamps": {},
        },
        "properties": {
            "correlation_id": "@TASK@",
            "delivery_mode": 2,
            "delivery_info": {"exchange": queue, "routing_key": queue},
            "priority": 0,
            "delivery_tag": "@SENT@-@TASK@",
        },
    }
    return orjson.dumps(message)
