"""The message of a job, as the ledger's scripts fill it in."""

import orjson

from jobs.messages import message_template


def test_a_filled_template_is_a_celery_message_with_ids_only() -> None:
    template = message_template("RUN", ("files", "hr_api"), "ns.files")
    filled = template.replace(b"@INDEX@", b"42").replace(b"@TASK@", b"RUN.000042").replace(b"@SENT@", b"1700000000000")
    message = orjson.loads(filled)
    assert orjson.loads(message["body"])[0] == ["RUN", 42, ["files", "hr_api"]]
    assert message["headers"]["task"] == "parley.conversation"
    assert message["headers"]["id"] == message["properties"]["correlation_id"] == "RUN.000042"
    assert message["properties"]["delivery_tag"] == "1700000000000-RUN.000042"
    assert message["properties"]["delivery_info"]["routing_key"] == "ns.files"
