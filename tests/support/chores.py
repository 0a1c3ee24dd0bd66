"""What test_pool asks of a worker: it runs in the child."""

import ctypes
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from qnnci.errors import UsageError

_kept = []

DEAF_SLEEP = ["setsid", "sleep", "1000"]  # in a session of its own, where the group's signals do not come


def whoami():
    return os.getpid()


def shout(text):
    print(f"stdout:{text}")
    print(f"stderr:{text}", file=sys.stderr)
    sys.stdout.flush()
    subprocess.run(["echo", "native"], check=True)
    return "said"


def complain():
    raise UsageError("no such thing", hint="look again", where="there")


def stumble():
    try:
        return 1 // 0
    except ZeroDivisionError as error:
        raise RuntimeError("stumbled") from error


def run_out():
    raise MemoryError


def abort():
    os.abort()


def segfault():
    ctypes.string_at(0)


def leave():
    os._exit(7)


def be_killed():
    os.kill(os.getpid(), signal.SIGKILL)


def hang():
    time.sleep(1000)


def hoard(megabytes):
    for _ in range(megabytes):
        _kept.append(b"x" * (1 << 20))
        time.sleep(0.002)
    time.sleep(1000)


def hang_in_a_tool(pid_file, own_session):
    tool = subprocess.Popen(DEAF_SLEEP if own_session else ["sleep", "1000"])
    Path(pid_file).write_text(str(tool.pid))
    tool.wait()


def leave_a_child_behind():
    from qnnci.toolchain.worker import tool_family

    with tool_family():
        code = f"import subprocess; print(subprocess.Popen({DEAF_SLEEP!r}, stdout=-3, stderr=-3).pid)"
        return int(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout)


def hoard_in_a_tool():
    subprocess.run([sys.executable, "-c", "x = b'x' * (600 << 20); import time; time.sleep(1000)"], check=True)


def spend(megabytes):
    return len(b"x" * (megabytes << 20))


def keep(megabytes):
    _kept.append(b"x" * (megabytes << 20))
    return os.getpid()
