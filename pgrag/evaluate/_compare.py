"""Serves the stage ``evaluate``: holds a run against another: measures, and what was set otherwise.

The statistics are those of ``compare``; here it is decided what may be compared with what.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pgrag.errors import PgragError
from pgrag.evaluate._principals import ANN_RECALL
from pgrag.evaluate._significance import Difference, compare

__all__ = ["ArmDifference", "RunComparison", "SettingDifference", "compare_runs", "setting_differences"]

# What is different each time and says nothing, or is said elsewhere.
_NO_SETTING = ("again", "left_out", "notes", "timings")
# Of what a run was asked by, what its settings don't say otherwise; and by which name.
_ASKED_BY = {"k": "k", "budget_tokens": "budget", "principals": "asked_as"}
_DEPTH = 100
_BY_VECTOR = ("dense", "hybrid")
_LSA = "lsa"
_ABSENT = object()
# No measure is larger; NaN isn't smaller either.
_LARGEST = 1e9


@dataclass(frozen=True)
class SettingDifference:
    """Something that was set, or found, otherwise.

    Attributes:
        name: Its path in the settings of a run, such as ``collection.k1``.
        old: What the old run had; None where it had nothing.
        new: What the new run has; likewise.
    """

    name: str
    old: Any
    new: Any


@dataclass(frozen=True)
class ArmDifference:
    """One measure of one arm in two runs.

    Attributes:
        arm: ``lexical``, ``dense``, ``hybrid``, ``lsa``; or another.
        figures: Both means, the difference with its interval, and how likely chance made it; Holm's correction counts all arms
            and measures that were compared.
    """

    arm: str
    figures: Difference


@dataclass(frozen=True)
class RunComparison:
    """A run beside another.

    Attributes:
        old: Run id, or name, of the old run.
        new: The same of the new one.
        queries: Judged queries that were compared.
        only_old: Those that only the old run has.
        only_new: Those that only the new run has.
        judged_otherwise: Whether the judgements, too, are others.
        arms: The figures by arm and measure, of what both have.
        settings: What was set or found otherwise.
    """

    old: str
    new: str
    queries: int
    only_old: tuple[str, ...]
    only_new: tuple[str, ...]
    judged_otherwise: bool
    arms: tuple[ArmDifference, ...]
    settings: tuple[SettingDifference, ...]


def compare_runs(
    old: Mapping[str, Any],
    new: Mapping[str, Any],
    *,
    shared: bool = False,
    measures: Sequence[str] = (),
) -> RunComparison:
    """Hold a run against another, measure by measure, on the same queries.

    Args:
        old: A run document.
        new: The other.
        shared: Compare the queries that both have, where the judged sets differ; else that is refused.
        measures: Compare these alone, and correct for these alone; none: all that both have. The intervals are not
            corrected.

    Raises:
        PgragError: a run is of another kind, the judged sets differ, nothing is on both sides, or a measure isn't; or the
            extra ``evaluate`` is missing.
    """
    for run in (old, new):
        _check_settings(run)
    _check_kinds(old, new)
    sides = _values(old), _values(new)
    only_old = tuple(query for query in sides[0] if query not in sides[1])
    only_new = tuple(query for query in sides[1] if query not in sides[0])
    names = _name(old), _name(new)
    judged = [((run.get("settings") or {}).get("judged") or {}).get("sha256") for run in (old, new)]
    judged_otherwise = None not in judged and judged[0] != judged[1]
    if not shared and (only_old or only_new):
        raise PgragError(
            f"{names[0]} and {names[1]} are of different judged sets: {len(only_old):,} queries are only in the old run,"
            f" {len(only_new):,} only in the new one",
            "--shared compares the queries that both have",
        )
    if not shared and judged_otherwise:
        raise PgragError(
            f"{names[0]} and {names[1]} have the same queries, judged otherwise: a difference may come from that alone",
            "Run the old settings again (pgrag eval run --again), or say --shared",
        )
    common = [query for query in sides[0] if query in sides[1]]
    arms = [
        arm
        for arm in dict.fromkeys(arm for query in common for arm in sides[0][query])
        if all(arm in side[query] for side in sides for query in common)
    ]
    if not common or not arms:
        raise PgragError(
            f"{names[0]} and {names[1]} have no {'arm' if common else 'query'} in common, so there is nothing to compare",
            None,
        )
    known = dict.fromkeys(
        name
        for arm in arms
        for name in sides[0][common[0]][arm]
        if all(name in side[query][arm] for side in sides for query in common)
    )
    for name in measures:
        if name not in known:
            raise PgragError(
                f'{names[0]} and {names[1]} don\'t both have "{name}"', f"Both have {', '.join(known)}."
            )
    # As one family, so that the correction counts all that is looked at.
    before, after = (
        {
            query: {
                f"{arm} {name}": value
                for arm in arms
                for name, value in side[query][arm].items()
                if not measures or name in measures
            }
            for query in common
        }
        for side in sides
    )
    figures = []
    for one in compare(before, after):
        arm, _, measure = one.measure.partition(" ")
        figures.append(ArmDifference(arm, replace(one, measure=measure)))
    return RunComparison(
        old=names[0],
        new=names[1],
        queries=len(common),
        only_old=only_old,
        only_new=only_new,
        judged_otherwise=judged_otherwise,
        arms=tuple(figures),
        settings=tuple(setting_differences(old.get("settings") or {}, new.get("settings") or {})),
    )


def setting_differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[SettingDifference]:
    """Return what the settings of two runs have otherwise, by name; a part of a part has its path, with dots.

    What belongs to an arm that only one has is left out: the list of arms says it.
    """
    lacking = _lacking(old, new)
    before, after = (
        {name: value for name, value in _leaves(_said(one)) if not name.startswith(lacking)}
        for one in (old, new)
    )
    return [
        SettingDifference(name, before.get(name), after.get(name))
        for name in sorted({**before, **after})
        if before.get(name, _ABSENT) != after.get(name, _ABSENT)
    ]


def _check_settings(run: Mapping[str, Any]) -> None:
    """Refuse a run whose settings, which may come from a file, can't be held against others."""
    settings = run.get("settings") or {}
    if not isinstance(settings, Mapping):
        raise _no_run(run, "its settings are none")
    arms, collection = settings.get("arms", []), settings.get("collection") or {}
    searched = collection.get("search_settings") if isinstance(collection, Mapping) else None
    for name, value in (("judged", settings.get("judged")), ("collection.search_settings", searched)):
        if not isinstance(value, Mapping | None):
            raise _no_run(run, f"{name} of its settings is no object")
    if not isinstance(arms, list) or not all(isinstance(arm, str) for arm in arms):
        raise _no_run(run, "arms of its settings is no list of names")


def _no_run(run: Mapping[str, Any], why: str) -> PgragError:
    return PgragError(f"{_name(run)} is no run: {why}", "pgrag eval run --full FILE writes one.")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= _LARGEST


def _check_kinds(old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
    """Refuse runs that have no queries to compare, or others."""
    kinds = [str((run.get("settings") or {}).get("kind", "run")) for run in (old, new)]
    hint = "pgrag eval runs shows the kind of each; pgrag eval run makes one to compare."
    for run, kind in zip((old, new), kinds, strict=True):
        if kind not in ("run", "answers"):
            raise PgragError(f"{_name(run)} is a {kind}, which has no figures by query to compare", hint)
        if kind == "answers" and set(kinds) != {kind}:
            raise PgragError(f"{_name(run)} is of judged answers, and the other is not", hint)


def _said(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings with what stands at other places of them by the names that people set it by."""
    said = dict(settings)
    again = settings.get("again")
    if isinstance(again, Mapping):
        said |= {name: again.get(key) for key, name in _ASKED_BY.items()}
    collection = settings.get("collection")
    if isinstance(collection, Mapping):
        searched = dict(collection.get("search_settings") or {})
        said["depth"] = searched.pop("depth", _DEPTH)
        said["collection"] = {**collection, "search_settings": searched}
    return said


def _lacking(*sides: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the beginnings of the names of settings that belong to an arm that not all sides have."""
    arms = [set(side["arms"]) for side in sides if isinstance(side.get("arms"), list)]
    if len(arms) < len(sides):
        return ()
    shared = set.intersection(*arms)
    lacking: tuple[str, ...] = ()
    if _LSA not in shared:
        lacking += (f"{_LSA}.", "libraries.scikit-learn")
    if not shared & set(_BY_VECTOR):
        lacking += ("passport.", "queries_embedded_by")
    return lacking


def _name(run: Mapping[str, Any]) -> str:
    number, name = run.get("run_id"), run.get("name")
    if number is None:
        return f'run "{name}"' if name else "a run without a name"
    return f"run {number}"


def _values(run: Mapping[str, Any]) -> dict[str, dict[str, dict[str, float]]]:
    """Return query to arm to measure to value, of the queries that count."""
    queries: dict[str, dict[str, dict[str, float]]] = {}
    rows = run.get("queries")
    if not isinstance(rows, list):
        raise _no_run(run, "it has no queries")
    for number, one in enumerate(rows, 1):
        query_id, metrics = (one.get("query_id"), one.get("metrics")) if isinstance(one, Mapping) else (0, 0)
        if not isinstance(query_id, str) or not isinstance(metrics, Mapping):
            raise _no_run(run, f"its query {number} has no query_id or no metrics")
        if query_id in queries:
            raise _no_run(run, f'it has query "{query_id}" twice')
        for values in metrics.values():
            if not isinstance(values, Mapping) or not all(map(_is_number, values.values())):
                raise _no_run(run, f'a measure of its query "{query_id}" is no number')
        queries[query_id] = {arm: dict(values) for arm, values in metrics.items()}
    # Of a query that nothing answers, only what needs no judgement may be known.
    counted = {
        query: {arm: values for arm, values in arms.items() if values.keys() - {ANN_RECALL}}
        for query, arms in queries.items()
    }
    return {query: arms for query, arms in counted.items() if arms}


def _leaves(values: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if not before and name in _NO_SETTING:
            continue
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", value
