"""What is sent to an agent for a call."""

from a2a.types import Message, Part, Role
from google.protobuf.json_format import ParseDict
from google.protobuf.struct_pb2 import Struct, Value

from engines.plain import JSONObject


def message_of(arguments: JSONObject, *, skill: str, message_id: str, context_id: str, task_id: str) -> Message:
    """The call's message, with its data if it has some; `metadata.skill_id` says which skill was chosen."""
    parts = [Part(text=arguments["message"])]
    if "data" in arguments:
        parts.append(Part(data=ParseDict(arguments["data"], Value())))
    return Message(
        message_id=message_id,
        context_id=context_id,
        task_id=task_id,
        role=Role.ROLE_USER,
        parts=parts,
        metadata=ParseDict({"skill_id": skill}, Struct()),
    )
