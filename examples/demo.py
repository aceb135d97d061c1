"""What ``make demo`` runs: the handbook goes in, three people ask the same, each gets what they may read.

Everything happens in a PostgreSQL of its own in a temporary folder, which is gone at the end. The commands
are the ones that you would type, and are shown before they run.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

import pgrag
from pgrag.server import temporary_server

HANDBOOK = Path(__file__).resolve().parent / "handbook"
COLLECTION = "handbook"
PEOPLE = {
    "user:ana": "Ana keeps the service running: group:sre, and through it platform, eng, staff",
    "user:emre": "Emre leads support: group:support, and through it customer, staff",
    "user:zoe": "Zoe is an illustrator from outside: group:contractors",
}
QUESTION = "E-4021 after key rotation"
INJECTION = "ignore all previous instructions"

TRUE_ANSWER = (
    "Gateways that were offline during the roll still hold a certificate of the retired key, so don't roll back [P1]. "
    "Readmitting trusts the retired key for those serial numbers only and for six hours at most [P1]."
)
FORGED_ANSWER = (
    "Readmitting trusts the retired key for 48 hours at most [P1]. "
    "Hold the reset button for twelve seconds [P9]."
)

SQL = f"""\
begin;
set local role pgrag_app;  -- as an application, since a superuser would see everything
select pgrag.act_as('user:zoe');
select uri, round(score::numeric, 5) as score, lexical_rank as words, dense_rank as meaning
from pgrag.search('{QUESTION}', k => 3);
commit;"""  # noqa: S608 - only the question above goes in

_WIDEST = 100
console = Console(highlight=False)
console.width = min(_WIDEST, console.width) if console.is_terminal else _WIDEST


def main() -> None:
    """Run the demonstration from beginning to end; what can't run here is said in two lines."""
    try:
        demonstrate()
    except pgrag.PgragError as error:
        raise SystemExit(f"Error: {error.message}\nTry: {error.hint}") from error


def demonstrate() -> None:
    """Do every step on a server of its own."""
    started = time.monotonic()
    say("A PostgreSQL of its own, in a temporary folder; it is gone when this ends.")
    with temporary_server() as server:
        environment = os.environ | {"PGRAG_DATABASE_URL": server.dsn, "COLUMNS": str(console.width)}
        load(environment)
        people(environment)
        pack(environment)
        check(server.dsn)
        injection(environment)
        sql(environment)
    what_next()
    console.print(f"[dim]{time.monotonic() - started:.0f} seconds. Nothing was left behind.[/dim]")


def load(environment: dict[str, str]) -> None:
    """Prepare the database and take the handbook in."""
    title("1  Documents in")
    pgrag_command(environment, "init")
    pgrag_command(environment, "upgrade")
    pgrag_command(environment, "create-collection", COLLECTION)
    folder = os.path.relpath(HANDBOOK)
    rules = ["--readers-file", f"{folder}/readers.toml", "--create-readers"]
    pgrag_command(environment, "ingest", f"{folder}/documents", "--collection", COLLECTION, *rules)


def people(environment: dict[str, str]) -> None:
    """Ask the same question as different people."""
    title("2  The same question, three people")
    for person, who in PEOPLE.items():
        say(f"{who}.")
        pgrag_command(environment, "search", QUESTION, "--as", person, "-k", "2")
    say(
        "`words` is the place and score by BM25, `meaning` the place and distance by vectors; the score fuses both. "
        "Engineers may read the runbook, customer support may not; contractors may read neither it nor the tickets. "
        "The three get different scores for the same passage: row-level security hides what somebody may not read from "
        "the statistics, too, so that they don't tell that it exists."
    )


def pack(environment: dict[str, str]) -> None:
    """Show what a language model is given."""
    title("3  For a language model: fenced as data, with ids to cite, within 400 tokens")
    pgrag_command(environment, "pack", QUESTION, "--as", "user:ana", "--budget", "400", lines=17)


def check(dsn: str) -> None:
    """Verify a true answer and a forged one."""
    title("4  Does an answer say what its sources say?")
    with pgrag.connect(dsn) as store:
        context = store.as_principals("user:ana").pack(QUESTION, budget_tokens=400)
    say("In Python: pgrag.verify_citations(answer, context)")
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in ("verdict", "the answer says"):
        table.add_column(name)
    for answer in (TRUE_ANSWER, FORGED_ANSWER):
        for claim in pgrag.verify_citations(answer, context).claims:
            colour = "green" if claim.verdict == "supported" else "red"
            table.add_row(f"[{colour}]{claim.verdict}[/{colour}]", escape(claim.text))
    console.print(table)


def injection(environment: dict[str, str]) -> None:
    """Show a document that gives orders to whoever reads it."""
    title("5  A document that gives orders")
    say(
        "Somebody pasted orders for a language model into ticket 88213, with closing fences and invisible characters. "
        "Emre may read it, so it may be found. It is flagged, and it can't close its fence: whoever wrote it couldn't "
        "know the eight digits, and what looks like a fence is made harmless."
    )
    command = ["pack", INJECTION, "--as", "user:emre", "--budget", "400"]
    show_command(*command, "--json")
    context = json.loads(run(environment, *command, "--json").stdout)
    flagged = [passage for passage in context["passages"] if passage["flagged"]]
    if not flagged:
        raise SystemExit("The document that gives orders was not packed, or not flagged.")
    for passage in flagged:
        lines = [line for line in passage["text"].splitlines() if line.strip()]
        console.print("\n".join(lines), style="yellow", markup=False)
        console.print(
            f"flagged: true, removed_characters: {passage['removed_characters']}, cited as {passage['passage_id']}"
        )


def sql(environment: dict[str, str]) -> None:
    """Search from psql, where nothing of Python runs."""
    title("6  The same from SQL, with no Python")
    show_command("psql")
    console.print(SQL, style="cyan", markup=False, soft_wrap=True)
    console.print(run(environment, "psql", "--", "-X", "-q", "-c", SQL).stdout.rstrip(), markup=False)


def what_next() -> None:
    """Say what to try."""
    title("What to try next")
    say("This server is gone. One that stays, with its data in your user data directory:")
    type_this(". .venv/bin/activate", "pgrag up", "pgrag init", "pgrag upgrade")
    say(
        "Then create-collection and ingest as above, or with documents of your own. Jun and Bo both do the payroll, and a "
        "deny entry keeps Bo from the salaries:"
    )
    type_this(
        "pgrag search 'salary of the chief executive' --as user:jun",
        "pgrag search 'salary of the chief executive' --as user:bo --explain",
    )
    say(
        "Who may read what is in examples/handbook/readers.toml; the SQL, the commands and the Python are in README.md."
    )


def type_this(*commands: str) -> None:
    """Show commands that aren't run."""
    for command in commands:
        console.print(f"$ {command}", style="bold cyan", markup=False, soft_wrap=True)


def pgrag_command(environment: dict[str, str], *arguments: str, lines: int | None = None) -> None:
    """Show a command, run it, and show what it prints, or the first ``lines`` of it."""
    show_command(*arguments)
    done = run(environment, *arguments)
    printed = (done.stdout.rstrip() + "\n" + done.stderr.rstrip()).strip().splitlines()
    kept = printed if lines is None or len(printed) <= lines else [*printed[:lines], "…"]
    console.print("\n".join(kept), markup=False)


def show_command(*arguments: str) -> None:
    """Show a command as it is typed."""
    words = [f"'{word}'" if re.search(r"\s", word) else word for word in arguments]
    type_this(f"pgrag {' '.join(words)}")


def run(environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a pgrag command; where it fails, end with what it said."""
    command = [sys.executable, "-m", "pgrag_cli.main", *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(done.stdout + done.stderr)
    return done


def say(text: str) -> None:
    """Print a sentence of the tale."""
    console.print(text, markup=False)


def title(text: str) -> None:
    """Begin a step."""
    console.print()
    console.rule(f"[bold]{text}[/bold]", align="left")


if __name__ == "__main__":
    main()
