"""What the files in ``docker/`` promise, read from them: there is no engine where these tests run."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

DOCKER = Path(__file__).resolve().parents[2] / "docker"
COMPOSE: dict[str, Any] = yaml.safe_load((DOCKER / "compose.yaml").read_text("utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
RUNNING = [name for name, service in SERVICES.items() if service["restart"] != "no"]
SUPERUSER = "postgres"


def compose() -> list[str] | None:
    """The command that reads compose files, if this machine has one."""
    for command in (["docker", "compose"], ["docker-compose"]):
        if (
            shutil.which(command[0])
            and not subprocess.run([*command, "version"], capture_output=True).returncode
        ):
            return command
    return None


def after(service: str) -> set[str]:
    """Every service that must have come before this one."""
    direct = SERVICES[service].get("depends_on", {})
    return set(direct).union(*(after(name) for name in direct))


def test_compose_accepts_the_file() -> None:
    command = compose()
    if command is None:
        pytest.skip("no docker compose here")
    arguments = [*command, "--file", str(DOCKER / "compose.yaml"), "config", "--quiet"]
    done = subprocess.run(arguments, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_only_the_database_and_the_worker_keep_running() -> None:
    assert RUNNING == ["db", "worker"]


def test_nothing_that_keeps_running_logs_in_as_the_superuser() -> None:
    users = {name: SERVICES[name]["environment"].get("PGUSER") for name in RUNNING}
    assert users == {"db": None, "worker": "pgrag_worker"}


def test_the_administrators_password_goes_to_no_service_that_could_do_without() -> None:
    holders = {name for name, service in SERVICES.items() if "admin_password" in service["secrets"]}
    assert holders == {"db", "init", "roles"}


def test_only_one_shot_services_log_in_as_the_superuser() -> None:
    logins = {name for name, service in SERVICES.items() if service["environment"].get("PGUSER") == SUPERUSER}
    assert logins.isdisjoint(RUNNING)


@pytest.mark.parametrize("service", SERVICES)
def test_no_password_is_in_an_environment(service: str) -> None:
    for name, value in SERVICES[service]["environment"].items():
        if "PASS" in name:
            assert name.endswith("_FILE")
            assert value.startswith("/run/secrets/")
        assert "://" not in value


def test_secrets_are_files_outside_of_the_repository() -> None:
    for name, secret in COMPOSE["secrets"].items():
        assert secret == {"file": f"${{PGRAG_SECRETS:-./secrets}}/{name}"}
    assert "secrets/" in (DOCKER / ".gitignore").read_text("utf-8").splitlines()


def test_every_secret_that_is_used_is_declared_and_the_other_way_round() -> None:
    used = {name for service in SERVICES.values() for name in service["secrets"]}
    assert used == set(COMPOSE["secrets"])


@pytest.mark.parametrize("service", RUNNING)
def test_what_keeps_running_has_a_health_check(service: str) -> None:
    assert SERVICES[service]["healthcheck"]["test"]


def test_the_database_is_prepared_in_order() -> None:
    assert after("worker") == {"db", "init", "roles", "upgrade"}
    assert after("upgrade") == {"db", "init", "roles"}
    assert after("roles") == {"db", "init"}


@pytest.mark.parametrize("service", [name for name in SERVICES if name != "db"])
def test_a_service_waits_until_the_database_is_healthy(service: str) -> None:
    assert SERVICES[service]["depends_on"]["db"] == {"condition": "service_healthy"}


@pytest.mark.parametrize("service", ["init", "roles", "upgrade"])
def test_a_one_shot_service_must_have_succeeded(service: str) -> None:
    conditions = [
        other["depends_on"][service]["condition"]
        for other in SERVICES.values()
        if service in other.get("depends_on", {})
    ]
    assert set(conditions) == {"service_completed_successfully"}


def test_the_database_listens_on_this_machine_only() -> None:
    assert [port.split(":")[0] for port in SERVICES["db"]["ports"]] == ["127.0.0.1"]
    assert all("ports" not in service for name, service in SERVICES.items() if name != "db")


def test_the_database_has_shared_memory_for_index_builds_and_a_named_volume() -> None:
    assert SERVICES["db"]["shm_size"] == "1g"
    volume = SERVICES["db"]["volumes"][0].split(":")[0]
    assert volume in COMPOSE["volumes"]


@pytest.mark.parametrize("service", SERVICES)
def test_no_container_can_gain_rights(service: str) -> None:
    assert SERVICES[service]["cap_drop"] == ["ALL"]
    assert SERVICES[service]["security_opt"] == ["no-new-privileges:true"]


def test_the_image_runs_as_another_than_root() -> None:
    lines = (DOCKER / "Dockerfile").read_text("utf-8").splitlines()
    final = lines[max(number for number, line in enumerate(lines) if line.startswith("FROM")) :]
    users = [line.split()[1] for line in final if line.startswith("USER")]
    assert users == ["10001"]


def test_secrets_are_not_sent_to_the_builder() -> None:
    rules = (DOCKER / "Dockerfile.dockerignore").read_text("utf-8").splitlines()
    assert next(rule for rule in rules if not rule.startswith("#")) == "*"
    assert not any("secrets" in rule for rule in rules if rule.startswith("!"))
