"""What a dense search costs is what was measured on this server, else what is usual."""

from __future__ import annotations

import pytest
from _pgrag import Database

COSTS = (
    "select d.exact_us, d.visible_us, d.effort_us, d.least_effort"
    " from pgrag._dense_costs(jsonb_populate_record(null::pgrag.space, %s), %s, %s, %s, %s) as d"
)
MEASURED = (
    '{"dimension": 100, "index_kind": "%s",'
    ' "calibration": {"exact_us": 2, "hidden_us": 0.5, "index_us": 10, "effort": 80}}'
)


def test_hidden_vectors_are_passed_by(db: Database) -> None:
    assert db.execute(COSTS, (MEASURED % "hnsw", 600, 1000, False, 1)) == [
        (1.2 * 2 * 600 + 0.5 * 400, 1.2 * 2 * 600, 10, 80)
    ]


def test_by_acl_only_visible_vectors_cost(db: Database) -> None:
    assert db.execute(COSTS, (MEASURED % "hnsw", 100, 1000, True, 1))[0][0] == 2.2 * 2 * 100


def test_a_probe_costs_its_list(db: Database) -> None:
    assert db.execute(COSTS, (MEASURED % "ivfflat", 1000, 1000, False, 20))[0][2] == 10 * 1000 / 20


def test_what_was_not_measured_is_as_usual(db: Database) -> None:
    space_as = '{"dimension": 100, "index_kind": "hnsw", "calibration": {}}'

    [(exact_us, _, effort_us, least_effort)] = db.execute(COSTS, (space_as, 1000, 1000, False, 1))

    assert exact_us == pytest.approx(1.2 * (0.2 + 0.0005 * 100) * 1000)
    assert (effort_us, least_effort) == (pytest.approx(6 + 0.035 * 100), 400)
