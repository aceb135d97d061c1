"""Serves the embedded server: what ``postmaster.pid`` says, and whether the process it names is that server.

A process id alone proves nothing: it may be a zombie's, or have been given to another program since.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pgrag._server_account import Account, run_as

__all__ = ["Postmaster", "orphans", "read_postmaster", "wait_until_gone"]


@dataclass(frozen=True)
class Postmaster:
    """What a server wrote about itself into its data directory.

    Attributes:
        data: The data directory in which the file stands.
        pid: Process id; negative for a single-user backend.
        port: Names the socket file; no TCP port unless the configuration says so.
        socket_directory: Where the socket is, or None before it is made.
        ready: Whether it accepts connections.
    """

    data: Path
    pid: int
    port: int
    socket_directory: Path | None
    ready: bool

    @property
    def alive(self) -> bool:
        """Whether this server runs, be it in another process namespace that shares the socket."""
        return self.visible or self._answers()

    @property
    def visible(self) -> bool:
        """Whether the process id is a living postgres in this data directory, so that it may be signalled."""
        pid = abs(self.pid)
        if sys.platform != "linux":
            shown = subprocess.run(
                ["/bin/ps", "-ww", "-o", "stat=,command=", "-p", str(pid)], capture_output=True, check=False
            )
            return (
                not shown.stdout.startswith(b"Z")
                and b"postgres" in shown.stdout
                and os.fsencode(self.data) in shown.stdout
            )
        return _state(pid) not in (None, "Z", "X") and _serves(pid, self.data)

    def _answers(self) -> bool:
        if self.socket_directory is None:
            return False
        with socket.socket(socket.AF_UNIX) as client, suppress(OSError):
            client.settimeout(2)
            client.connect(str(self.socket_directory / f".s.PGSQL.{self.port}"))
            return True
        return False


def read_postmaster(data: Path) -> Postmaster | None:
    """Return what ``data / "postmaster.pid"`` says, or None where there is none or it is not yet whole.

    Raises:
        PermissionError: the caller may not read it.
    """
    try:
        lines = (data / "postmaster.pid").read_text(errors="surrogateescape").split("\n")
        pid = int(lines[0])
        if abs(pid) <= 1:
            return None
        return Postmaster(
            data,
            pid,
            int(lines[3]),
            Path(lines[4]) if lines[4] else None,
            len(lines) > 7 and lines[7].strip() == "ready",
        )
    except (FileNotFoundError, NotADirectoryError, IndexError, ValueError):
        return None


def wait_until_gone(pid: int, timeout_seconds: float) -> bool:
    """Wait until a process has ended, zombies included; return whether it has."""
    end = time.monotonic() + timeout_seconds
    while _exists(pid) and _state(pid) not in ("Z", "X"):
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def orphans(data: Path, account: Account) -> list[int]:
    """Return the living postgres processes that a dead server left behind, ascending.

    Those are the children of a killed postmaster in ``data``, and servers whose directory, once at this path,
    was deleted under them: within a minute they notice, and take their successor's socket with them. Call it
    where no server of ``data`` is alive. Without ``/proc`` nothing is seen.

    Args:
        data: The data directory.
        account: Who ran the server. That account looks: in a container, root may not look into its processes.
    """
    if sys.platform != "linux":
        return []
    script = """
        for process in /proc/[0-9]*; do
            read -r name < "$process/comm" && test "$name" = postgres || continue
            test "$process/cwd" -ef "$1" || test "$(readlink "$process/cwd")" = "$1 (deleted)" || continue
            echo "${process#/proc/}"
        done 2> /dev/null
    """
    pids = sorted(map(int, run_as(account, ["/bin/sh", "-c", script, "sh", data]).stdout.split()))
    return [pid for pid in pids if _state(pid) not in (None, "Z", "X")]


def _serves(pid: int, data: Path) -> bool:
    """Whether a process is postgres in ``data``: by working directory, or if that is hidden, arguments."""
    if _command(pid) != "postgres":
        return False
    here = _works_in(pid, data)
    if here is not None:
        return here
    try:
        arguments = (Path("/proc") / str(pid) / "cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return b"-D" in arguments and os.fsencode(data) in arguments


def _works_in(pid: int, data: Path) -> bool | None:
    """Whether a process's working directory is ``data``; None where that is hidden (as in containers)."""
    try:
        return (Path("/proc") / str(pid) / "cwd").samefile(data)
    except PermissionError:
        return None
    except OSError:
        return False


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _state(pid: int) -> str | None:
    """Return the state letter of a process (``Z`` is a zombie), or None where it can't be known."""
    try:
        return (Path("/proc") / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return None


def _command(pid: int) -> str | None:
    try:
        return (Path("/proc") / str(pid) / "comm").read_text(errors="replace").rstrip("\n")
    except OSError:
        return None
