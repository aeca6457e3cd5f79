"""Which queue a job goes to."""

from engines.tool import Tool
from engines.toolset import Toolset
from jobs.routing import permit_limits, queue_of, route_of

TOOLSETS = {
    "weather": Toolset(namespace="weather", engine=None, tools=()),
    "hr_api": Toolset(namespace="hr_api", engine=None, tools=(), stateful=True, max_concurrency=4),
    "files": Toolset(namespace="files", engine=None, tools=(), stateful=True),
}


def tool(namespace: str) -> Tool:
    return Tool(name="look", namespace=namespace)


def test_a_stateless_job_goes_to_the_queue_of_all_conversations() -> None:
    assert route_of([tool("weather")], TOOLSETS) == ()
    assert queue_of((), {}) == "conversations"


def test_a_route_names_each_stateful_namespace_once_in_order() -> None:
    assert route_of([tool("hr_api"), tool("files"), tool("hr_api"), tool("weather")], TOOLSETS) == ("files", "hr_api")


def test_a_job_of_several_stateful_namespaces_waits_for_the_scarcest() -> None:
    limits = permit_limits(TOOLSETS)
    assert limits == {"hr_api": 4, "files": 1}
    assert queue_of(("files", "hr_api"), limits) == "ns.files"
    assert queue_of(("a", "b"), {"a": 2, "b": 2}) == "ns.a", "the same answer on every machine"
