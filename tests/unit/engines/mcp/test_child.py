"""Started servers: a clean environment, a drained stderr, and nothing left of them."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest
import structlog

from engines.mcp.child import Child, Command
from tests.unit.engines.mcp.building import open_files, processes


def python(code: str, **environment: str) -> Command:
    return Command((sys.executable, "-c", code), environment)


async def output_of(command: Command) -> str:
    child = await Child.start(command)
    output = b""
    while chunk := await child.read():
        output += chunk
    await child.stop()
    return output.decode()


async def test_sec_s9_a_child_knows_path_home_lang_and_what_it_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "canary")
    monkeypatch.setenv("LANG", "C.UTF-8")
    listed = await output_of(python("import os; print('\\n'.join(sorted(os.environ)))", DESK_TOKEN="t"))
    assert set(listed.split()) - {"LC_CTYPE"} == {"PATH", "HOME", "LANG", "DESK_TOKEN"}


async def test_sec_s9_arguments_are_a_list_and_no_shell_reads_them(tmp_path: Path) -> None:
    words = ["$(touch pwned)", "; touch pwned", "`touch pwned`", "a b"]
    command = Command((sys.executable, "-c", "import sys; print(sys.argv[1:])", *words))
    assert await output_of(command) == f"{words}\n"
    assert not Path("pwned").exists()


async def test_a_child_that_writes_much_to_stderr_goes_on_and_the_log_is_bounded() -> None:
    with structlog.testing.capture_logs() as logs:
        command = python("import sys; sys.stderr.write('\\x1b[31mtrouble\\n' * 200_000); print('done')")
        assert await output_of(command) == "done\n"
    lines = [log for log in logs if log["event"] == "an mcp server said"]
    assert 0 < len(lines) <= 1000
    assert lines[0]["line"] == "[31mtrouble"


async def test_sec_s11_what_a_child_said_at_its_end_is_told_without_its_secrets() -> None:
    child = await Child.start(
        python("import os, sys; sys.exit('no access with ' + os.environ['TOKEN'])", TOKEN="canary-7")
    )
    epitaph = await child.epitaph()
    await child.stop()
    assert epitaph.endswith("exited with 1 (stderr: no access with ***)")
    assert "canary-7" not in repr(child._command)


@pytest.mark.parametrize(
    "code",
    [
        "import sys; sys.stdin.read()",
        "import time; time.sleep(1000)",
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(1000)",
        "import os, sys; os.fork(); sys.stdin.read()",
        "import os, time; os.fork() and os._exit(0); time.sleep(1000)",
    ],
)
async def test_f22_a_child_and_its_children_are_ended_and_reaped(code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engines.mcp.child._GRACE_SECONDS", 0.3)
    files = open_files()
    child = await Child.start(python(f"print('up', flush=True); {code}"))
    assert await child.read() == b"up\n"
    group = child._process.pid
    await child.stop()
    await child.stop()
    async with asyncio.timeout(5):
        while processes(group=group):  # A grandchild is reaped by the system's first process.
            await asyncio.sleep(0.01)
    assert open_files() == files


async def test_pipes_that_a_runaway_grandchild_holds_open_are_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engines.mcp.child._GRACE_SECONDS", 0.3)
    files = open_files()
    runaway = "import os, time; pid = os.fork(); pid or (os.setsid(), time.sleep(1000)); print(pid, flush=True)"
    child = await Child.start(python(runaway))
    pid = int(await child.read())
    await child.stop()
    async with asyncio.timeout(5):
        while open_files() > files:
            await asyncio.sleep(0.01)
    os.kill(pid, signal.SIGKILL)


async def test_a_stop_that_is_cancelled_still_ends_the_child() -> None:
    child = await Child.start(python("import time; print('up', flush=True); time.sleep(1000)"))
    await child.read()
    stopping = asyncio.create_task(child.stop())
    await asyncio.sleep(0)
    stopping.cancel()
    with pytest.raises(asyncio.CancelledError):
        await stopping
    assert child._process.returncode is not None
