"""Runs a command that cannot outlive its parent: `python -IS tether.py PARENT_PID SIGNAL COMMAND…`.

On Linux the kernel is asked to send the signal when the parent dies, and the command takes this process's place.
Elsewhere this process stays in between and looks after the parent. Nothing but the standard library is imported: each
child process of an embedded run starts here.
"""

import ctypes
import os
import signal
import subprocess
import sys
import time

_PR_SET_PDEATHSIG = 1
_LOOK_EVERY_SECONDS = 0.5


def main(parent: int, number: int, command: list[str]) -> int:
    """Become `command`, tied to `parent`; returns only where the kernel cannot tie."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, number, 0, 0, 0)
        if os.getppid() != parent:  # It died before the kernel was asked.
            return 1
        os.execv(command[0], command)  # noqa: S606 - it takes this process's place, without a shell
    return _watch(parent, number, command)


def _watch(parent: int, number: int, command: list[str]) -> int:
    child = subprocess.Popen(command)
    for number_of_group in (signal.SIGTERM, signal.SIGINT):
        # Signals go to the whole group: the command got it too, and this process must outlast it.
        signal.signal(number_of_group, lambda _number, _frame: None)
    while child.poll() is None:
        if os.getppid() != parent:
            child.send_signal(number)
        time.sleep(_LOOK_EVERY_SECONDS)
    return child.returncode


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]))
