"""Serves the stage ``evaluate``: makes one HTML page of a run, or of a run beside an earlier one.

The page asks the network for nothing. What a run holds (queries, uris, names) was written by others: it is escaped by Jinja,
isolated from the direction of the text around it, and never becomes a link.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from pgrag._version import __version__
from pgrag.errors import PgragError
from pgrag.evaluate import _charts
from pgrag.evaluate._compare import RunComparison, compare_runs
from pgrag.evaluate._extra import needs_extra
from pgrag.evaluate._principals import ANN_RECALL, PROMISE
from pgrag.evaluate._system import SEARCH_STAGES

__all__ = ["Step", "funnel", "read_run_file", "report_html"]

# What is left after a stage, and how evidence is lost at it.
_WORDS = {
    "not_ingested": ("Ingested", "the document is not in the collection"),
    "not_permitted": ("Permitted", "the asker may not read it"),
    "split": ("Whole", "chunking cut through it"),
    "representation": ("Represented", "not among the best of either arm, searched exactly"),
    "ann": ("Found by ANN", "among the nearest, but the approximate index did not find it"),
    "fusion": ("Fused", "an arm found it, but fusion ranked it too low"),
    "rerank": ("Reranked", "fused, but reranking put it too low"),
    "pack": ("Packed", "ranked, but not in the packed context"),
}
_KEPT = "kept"
_REFUSED = "not_permitted"

# What a page has room for. Below a megabyte it opens at once, and can be sent by mail.
_MOST_BYTES = 1_000_000
_QUERIES = 50
_CHANGED = 15
_EVIDENCE = 10
_PRINCIPALS = 200
_CHARACTERS = 400
_SETTINGS = 100
_JSON_CHARACTERS = 100_000
_BINS = 10

_THIN = "\u202f"  # between thousands, and between a figure and its unit
_NONE = "–"
# More of them is no better: how much was judged, and what only one arm has.
_NOT_BETTER = ("judged@", "ann_recall@")
# By these a run is told in a word; one that has neither, by its first ones.
_HEADLINE = ("ndcg@10", "recall@10")
# A database gives back keys in an order of its own; people read them in this one.
_ARMS = ("lexical", "dense", "hybrid", "reranked")
_MEASURES = ("ndcg", "ndcg_exp", "recall", "mrr", "map", "precision", "hit", "judged", "ann_recall")
_TEMPLATES = Path(__file__).parent / "templates"
_NAMES = {
    "ndcg": "nDCG",
    "ndcg_exp": "nDCG (exp.)",
    "mrr": "MRR",
    "map": "MAP",
    "hit": "Hit rate",
    "ann_recall": "ANN recall",
}


@dataclass(frozen=True)
class Step:
    """A step of the funnel.

    Attributes:
        stage: Its name in the ledger; None for the first step, which has everything.
        label: What is left after it, in words.
        why: How evidence is lost there, in words.
        lost: Pieces of evidence that it lost.
        left: Pieces that are left after it.
    """

    stage: str | None
    label: str
    why: str
    lost: int
    left: int


def funnel(ledger: Mapping[str, int], *, reranked: bool = False) -> list[Step]:
    """Return what was left of the judged evidence after each stage.

    Args:
        ledger: Stage to pieces of evidence, as in a run's document. A stage that isn't named lost nothing; ``rerank`` has a
            step only where it lost something or ``reranked`` says so. A stage that is not known comes last.
        reranked: Whether there was a reranker.

    Returns:
        The steps in order: the first has the sum of the ledger, the last what was kept.
    """
    left = sum(ledger.values())
    made = [Step(None, "Judged", "", 0, left)]
    known = [stage for stage in _WORDS if stage != "rerank" or reranked or ledger.get(stage)]
    for stage in [*known, *sorted(set(ledger) - set(_WORDS) - {_KEPT})]:
        lost = ledger.get(stage, 0)
        left -= lost
        label, why = _WORDS.get(stage, (f"After {_short(stage, 40)}", ""))
        made.append(Step(stage, label, why, lost, left))
    return made


def read_run_file(path: Path) -> dict[str, Any]:
    """Read a run's document from a file that ``pgrag eval run --full`` wrote.

    Raises:
        PgragError: the file can't be read, or holds no run's document.
    """
    again = "pgrag eval run --collection NAME --full FILE"
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise PgragError(f"{path} can't be read: {error.strerror}", again) from error
    except (ValueError, RecursionError) as error:
        raise PgragError(f"{path} isn't JSON", again) from error
    if not isinstance(document, dict) or not _mapping(document.get("metrics")):
        raise PgragError(f"{path} isn't a run's document: it has no metrics", again)
    if "collection" not in document and "queries" not in document:
        raise PgragError(f"{path} has only the means of a run", again)
    return document


def report_html(document: Mapping[str, Any], against: Mapping[str, Any] | None = None) -> str:
    """Return a run as one HTML page that needs no other file and no network.

    Args:
        document: The run's document. What it lacks, the page lacks.
        against: The document of an earlier run, to be shown beside it.

    Returns:
        The page, below a megabyte: the worst queries are as many as fit, and it says how many are left out.

    Raises:
        PgragError: the extra ``evaluate`` is missing.
    """
    missing = needs_extra("matplotlib", "jinja2", what="a report")
    if missing is not None:
        raise missing
    for run in filter(None, (document, against)):
        if against is not None and _is_tune(run):
            raise PgragError(
                f"run {run.get('run_id')} tuned settings, and can't be held against another",
                "pgrag eval report of it alone",
            )
        if not any(values for values in _metrics(run).values()) and not _is_tune(run):
            raise PgragError(
                f"run {run.get('run_id')} has no measures: it isn't finished, or no run of judged queries",
                "pgrag eval runs",
            )
    view = _view(document, against)
    for most in (_QUERIES, 25, 12, 6, 3, 1, 0):
        listings = _listings(document, against, view["main"], most)
        has_evidence = any(query["judged"] for one in listings for query in one["queries"])
        page = _render({**view, "listings": listings, "has_evidence": has_evidence})
        if len(page.encode()) < _MOST_BYTES:
            break
    return page


def _render(view: Mapping[str, Any]) -> str:
    import jinja2
    from markupsafe import Markup

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        count=_count, score=_score, ms=_ms, percent=_percent, signed=_signed, p=_p, measure=_measure_name
    )
    inline: dict[str, Any] = {}
    for kind in ("css", "js"):
        text = (_TEMPLATES / f"report.{kind}").read_text(encoding="utf-8")
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        inline[kind] = Markup(text)  # noqa: S704  files of this package
        inline[f"{kind}_hash"] = f"sha256-{digest}"
    page: str = environment.get_template("report.html").render(
        **inline, **view, version=__version__, Markup=Markup
    )
    return page


def _view(document: Mapping[str, Any], against: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return what the template shows, but for the listings of queries."""
    # What groups of settings reached are no measures of arms; they have a section of their own.
    metrics = {} if _is_tune(document) else _metrics(document)
    main = _main_arm(metrics)
    old = against or {}
    ledger, old_ledger = _ledger(document), _ledger(old)
    return {
        "main": main,
        "main_measure": _main_measure(metrics, main),
        "again": _again(document),
        "run": _heading(document),
        "old": _heading(old) if against is not None else None,
        "headline": _headline(document, against, main) if metrics else [],
        "metrics": _metrics_table(document) if metrics else None,
        "tuned": _tuned_view(document),
        "histograms": _histograms(document),
        "compared": _compared(old, document, main) if against is not None else None,
        "funnel": _funnel_view(ledger, old_ledger, reranked="reranked" in metrics),
        "counterfactuals": _counterfactuals(document),
        "answers": _answers_view(document),
        "bands": _bands_view(document, old),
        "latency": _latency_view(document, old),
        "principals": _principals_view(document, main),
        "system": list(_flat(document.get("system"))),
        "settings": _settings_view(document, against),
        "notes": [_short(note) for note in _list(_mapping(document.get("settings")).get("notes"))][:20],
    }


# Numbers


def _number(value: object) -> float | None:
    """Return a finite number; None for whatever else stands there."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    with suppress(OverflowError):
        return float(value) if math.isfinite(value) else None
    return None


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(value: object) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else []


def _rows(value: object) -> list[Mapping[str, Any]]:
    return [row for row in _list(value) if isinstance(row, Mapping)]


def _count(value: object) -> str:
    number = _number(value)
    return _NONE if number is None else f"{number:,.0f}".replace(",", _THIN)


def _score(value: object) -> str:
    number = _number(value)
    return _NONE if number is None else f"{number:.3f}".replace("-", "−")


def _ms(value: object) -> str:
    """Three digits are enough of a time: 0.42, 4.2, 42, 420, 4 200."""
    number = _number(value)
    if number is None:
        return _NONE
    digits = 2 if number < 1 else 1 if number < 100 else 0
    return f"{number:,.{digits}f}".replace(",", _THIN)


def _percent(value: object) -> str:
    number = _number(value)
    if number is None:
        return _NONE
    share = 100 * number
    digits = 0 if share >= 9.95 else 1 if share >= 0.095 else 2
    return f"{share:.{digits}f}".removesuffix(".00").removesuffix(".0") + f"{_THIN}%"


def _signed(value: object) -> str:
    number = _number(value)
    if number is None:
        return _NONE
    text = f"{number:+.3f}".replace("-", "−")
    return "0.000" if text in ("+0.000", "−0.000") else text


def _p(value: object) -> str:
    number = _number(value)
    if number is None:
        return _NONE
    return f"<{_THIN}0.001" if number < 0.001 else f"{number:.3f}"


def _measure_name(measure: str) -> str:
    """``ndcg@10`` as people write it: ``nDCG@10``."""
    word, at, cut = measure.partition("@")
    return _NAMES.get(word, (word[:1].upper() + word[1:]).replace("_", " ")) + at + cut


def _short(value: object, most: int = _CHARACTERS) -> str:
    text = str(value)
    return text if len(text) <= most else text[: most - 1] + "…"


def _when(started: object, finished: object) -> str:
    """Return from when until when, to the minute: ``2026-11-30 06:01 to 06:03 UTC``."""
    try:
        times = [datetime.fromisoformat(str(one)) for one in (started, finished) if one]
    except ValueError:
        return ""
    days = [one.strftime("%Y-%m-%d") for one in times]
    words = [f"{day} {one:%H:%M}" for day, one in zip(days, times, strict=True)]
    if len(words) == 2 and days[0] == days[1]:
        words[1] = f"{times[1]:%H:%M}"
    zone = times[-1].strftime("%Z") if times else ""
    return f"{' to '.join(words)} {zone}".strip()


# Sections


def _metrics(document: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    given = _mapping(document.get("metrics"))
    return {arm: _mapping(given[arm]) for arm in _in_order(given, _ARMS)}


def _in_order(names: Iterable[str], order: Sequence[str]) -> list[str]:
    """Return names in a given order, without repeats; those that aren't in it come last, as they were."""
    return sorted(dict.fromkeys(names), key=lambda name: order.index(name) if name in order else len(order))


def _measures_in_order(names: Iterable[str]) -> list[str]:
    """Return measures in the order in which people read them: ``recall@10`` before ``recall@100``."""

    def place(name: str) -> tuple[int, int]:
        word, _, cut = name.partition("@")
        known = _MEASURES.index(word) if word in _MEASURES else len(_MEASURES)
        return known, int(cut) if cut.isascii() and cut.isdigit() and len(cut) < 10 else 0

    return sorted(dict.fromkeys(names), key=place)


def _main_arm(metrics: Mapping[str, Mapping[str, Any]]) -> str | None:
    """Return the arm that people get: the last that was built of reranked and hybrid, else the best."""
    for arm in ("reranked", "hybrid"):
        if arm in metrics:
            return arm
    return max(metrics, key=lambda arm: _number(metrics[arm].get("ndcg@10")) or 0, default=None)


def _main_measure(metrics: Mapping[str, Mapping[str, Any]], main: str | None) -> str:
    """Return the measure by which queries are put in order."""
    known = metrics.get(main or "", {})
    return next((one for one in (*_HEADLINE, *known) if one in known), _HEADLINE[0])


def _ledger(document: Mapping[str, Any]) -> dict[str, int]:
    """Return the ledger, or count it from the queries' evidence where the document has none."""
    given = _mapping(document.get("ledger"))
    if given:
        return {
            stage: int(number) for stage, value in given.items() if (number := _number(value)) is not None
        }
    return dict(
        Counter(
            str(piece.get("stage"))
            for query in _rows(document.get("queries"))
            for piece in _rows(query.get("evidence"))
        )
    )


def _again(document: Mapping[str, Any]) -> str | None:
    """Return the command that repeats a run that was kept with what it was asked by."""
    run_id = document.get("run_id")
    if isinstance(run_id, int) and _mapping(_mapping(document.get("settings")).get("again")):
        return f"pgrag eval run --again {run_id}"
    return None


def _is_tune(document: Mapping[str, Any]) -> bool:
    return _mapping(document.get("settings")).get("kind") == "tune"


def _heading(document: Mapping[str, Any]) -> dict[str, Any]:
    queries: object = len(_list(document.get("queries"))) if "queries" in document else None
    if _is_tune(document):
        queries = _mapping(document.get("settings")).get("queries")
    return {
        "id": document.get("run_id"),
        "name": _short(document.get("name") or ""),
        "collection": _short(document.get("collection") or ""),
        "when": _when(document.get("started_at"), document.get("finished_at")),
        "queries": queries,
    }


def _headline(
    document: Mapping[str, Any], against: Mapping[str, Any] | None, main: str | None
) -> list[dict[str, Any]]:
    """Return the few figures that a reader takes away: label, value, note, and whether it is bad."""
    made: list[dict[str, Any]] = []
    old = against or {}

    def add(label: str, value: str, note: str, bad: bool = False) -> None:
        made.append({"label": label, "value": value, "note": note, "bad": bad})

    metrics, before = _metrics(document), _metrics(old)
    known = metrics.get(main or "", {})
    for measure in [one for one in _HEADLINE if one in known] or list(known)[:3]:
        value = _value(metrics.get(main or "", {}).get(measure))
        if value is not None:
            earlier = _value(before.get(main or "", {}).get(measure))
            note = f"{main}"
            if earlier is not None:
                change = _signed(value - earlier)
                note += ", as before" if change == "0.000" else f", {change} from {_score(earlier)}"
            add(_measure_name(measure), _score(value), note)
    ledger, old_ledger = _ledger(document), _ledger(old)
    total = sum(ledger.values())
    if total:
        kept = ledger.get(_KEPT, 0)
        note = f"{_count(kept)} of {_count(total)}"
        if sum(old_ledger.values()):
            note += f", was {_percent(old_ledger.get(_KEPT, 0) / sum(old_ledger.values()))}"
        add("Evidence kept", _percent(kept / total), note)
    spread = _mapping(_mapping(_mapping(document.get("latency_ms")).get(main or "")).get("total"))
    if _number(spread.get("p95")) is not None:
        earlier = _mapping(_mapping(_mapping(old.get("latency_ms")).get(main or "")).get("total")).get("p95")
        note = f"p50 {_ms(spread.get('p50'))}{_THIN}ms"
        if _number(earlier) is not None:
            note = f"{note}; p95 was {_ms(earlier)}{_THIN}ms"
        add("Latency p95", f"{_ms(spread['p95'])}{_THIN}ms", note)
    measured = [row for row in _rows(document.get("principals")) if _is_promise_measured(row)]
    if measured:
        below = sum(1 for row in measured if row.get("below_promise"))
        add("Below the promise", _count(below), f"of {_count(len(measured))} askers", bad=below > 0)
    return made


def _is_promise_measured(row: Mapping[str, Any]) -> bool:
    return bool(row.get("below_promise")) or _number(row.get(ANN_RECALL)) is not None


def _value(entry: object) -> float | None:
    """Return a mean, which stands alone or with its interval: ``{"mean": …, "low": …, "high": …}``."""
    return _number(entry.get("mean")) if isinstance(entry, Mapping) else _number(entry)


def _interval(document: Mapping[str, Any], arm: str, measure: str) -> tuple[float, float] | None:
    """Return the interval of a mean where the document gives one, beside the mean or in ``intervals``."""
    entry = _mapping(_metrics(document).get(arm)).get(measure)
    if not isinstance(entry, Mapping):
        entry = _mapping(_mapping(document.get("intervals")).get(arm)).get(measure)
    if isinstance(entry, Mapping):
        low, high = _number(entry.get("low")), _number(entry.get("high"))
    elif isinstance(entry, list | tuple) and len(entry) == 2:
        low, high = map(_number, entry)
    else:
        return None
    return None if low is None or high is None else (low, high)


def _metrics_table(document: Mapping[str, Any]) -> dict[str, Any] | None:
    metrics = _metrics(document)
    measures = _measures_in_order(measure for values in metrics.values() for measure in values)
    if not measures:
        return None
    values = {(arm, one): _value(metrics[arm].get(one)) for arm in metrics for one in measures}
    best = {
        one: max((v for arm in metrics if (v := values[arm, one]) is not None), default=None)
        for one in measures
        if not one.startswith(_NOT_BETTER)
    }
    rows = [
        (
            arm,
            [
                {
                    "value": values[arm, one],
                    "interval": _interval(document, arm, one),
                    "best": len(metrics) > 1
                    and values[arm, one] is not None
                    and values[arm, one] == best.get(one),
                }
                for one in measures
            ],
        )
        for arm in metrics
    ]
    return {
        "measures": measures,
        "rows": rows,
        "intervals": any(cell["interval"] for _, cells in rows for cell in cells),
    }


def _per_query(document: Mapping[str, Any], arm: str) -> dict[str, dict[str, float]]:
    """Return query to measure to value, of an arm."""
    return {
        str(query.get("query_id")): {
            measure: number
            for measure, value in _mapping(_mapping(query.get("metrics")).get(arm)).items()
            if (number := _number(value)) is not None
        }
        for query in _rows(document.get("queries"))
        if arm in _mapping(query.get("metrics"))
    }


def _histograms(document: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return how many queries got how much nDCG@10, an arm a chart."""
    charts: list[tuple[str, str]] = []
    table: list[tuple[str, list[int]]] = []
    for arm in _metrics(document):
        values = [one["ndcg@10"] for one in _per_query(document, arm).values() if "ndcg@10" in one]
        if not values:
            continue
        counts = [0] * _BINS
        for value in values:
            counts[min(_BINS - 1, max(0, int(value * _BINS)))] += 1
        words = f"{arm}: {_count(counts[0])} of {_count(len(values))} queries below 0.1, {_count(counts[-1])} from 0.9 up."
        charts.append((arm, _charts.bars(counts, name=f"histogram-{len(charts)}", label=words)))
        table.append((arm, counts))
    if not charts:
        return None
    edges = [f"{place / _BINS:.1f} to {(place + 1) / _BINS:.1f}" for place in range(_BINS)]
    return {"charts": charts, "rows": table, "edges": edges}


def _compared(old: Mapping[str, Any], new: Mapping[str, Any], main: str | None) -> dict[str, Any]:
    """Return each measure of each arm that both runs have: tested where both know their queries, else the means."""
    tested: RunComparison | None = None
    if (
        needs_extra("scipy", "statsmodels") is None
        and _rows(old.get("queries"))
        and _rows(new.get("queries"))
    ):
        # They have no query or arm in common: there is nothing to test.
        with suppress(PgragError):
            tested = compare_runs(old, new, shared=True)
    found = {(one.arm, one.figures.measure): one.figures for one in tested.arms} if tested else {}
    before, after = _metrics(old), _metrics(new)
    arms: dict[str, list[dict[str, Any]]] = {}
    for arm in (arm for arm in after if arm in before):
        for measure in _measures_in_order(after[arm]):
            earlier, later = _value(before[arm].get(measure)), _value(after[arm].get(measure))
            if earlier is None or later is None:
                continue
            one = found.get((arm, measure))
            arms.setdefault(arm, []).append(
                {
                    "measure": measure,
                    "old": one.old if one else earlier,
                    "new": one.new if one else later,
                    "difference": one.difference if one else later - earlier,
                    "test": one,
                }
            )
    return {
        "arms": sorted(arms.items(), key=lambda row: row[0] != main),
        "queries": tested.queries if tested else None,
        "only_old": len(tested.only_old) if tested else 0,
        "only_new": len(tested.only_new) if tested else 0,
        "judged_otherwise": tested.judged_otherwise if tested else False,
    }


def _funnel_view(
    ledger: Mapping[str, int], old_ledger: Mapping[str, int], *, reranked: bool
) -> dict[str, Any] | None:
    total = sum(ledger.values())
    if not total:
        return None
    made = funnel(ledger, reranked=reranked)
    before = {step.label: step for step in funnel(old_ledger)} if sum(old_ledger.values()) else {}
    kept = made[-1].left
    # What the asker may not read is rightly not found.
    worst = max((step for step in made if step.stage != _REFUSED), key=lambda step: step.lost)
    refused = ledger.get(_REFUSED, 0)
    words = (
        f"Of {_count(total)} pieces of judged evidence {_count(kept)} were kept ({_percent(kept / total)})"
    )
    words += f", and {_count(refused)} the asker may not read." if refused else "."
    if worst.lost:
        words += f" The largest loss{' beside these' if refused else ''}, {_count(worst.lost)}, was at “{worst.stage}”"
        words += f": {worst.why}." if worst.why else "."
    drawn = [
        _charts.Bar(
            step.label,
            step.left,
            step.lost,
            f"{_count(step.left)} · {_percent(step.left / total)}",
            # Of another number of judgements a mark would say nothing, so shares are drawn.
            round(before[step.label].left / before["Judged"].left * total) if step.label in before else None,
        )
        for step in made
    ]
    return {
        "words": words,
        "total": total,
        "steps": made,
        "old": before,
        "chart": _charts.steps(drawn, name="funnel", label=words),
    }


def _counterfactuals(document: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the settings that would have kept something, and how many that were tried would not."""
    rows = [
        {
            "stage": _short(row.get("stage", ""), 40),
            "setting": _short(row.get("setting", "")),
            "value": _short(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)),
            "passes": _number(row.get("passes")),
            "keeps": _number(row.get("keeps")),
            "of": _number(row.get("of")),
        }
        for row in _rows(document.get("counterfactuals"))
        for value in (row.get("value", ""),)
    ]
    helpful = [row for row in rows if row["keeps"] or row["passes"]]
    if not rows:
        return None
    return {
        "rows": helpful[:100],
        "useless": len(rows) - len(helpful),
        "passes": any(row["passes"] is not None for row in helpful),
    }


def _answers_view(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the figures of judged answers, a row a metric."""
    names = ("mean", "judged", "unjudged", "labels", "estimate", "low", "high")
    return [
        {"metric": _short(row.get("metric", ""), 40)} | {name: _number(row.get(name)) for name in names}
        for row in _rows(_mapping(document.get("answers")).get("figures"))[:40]
    ]


def _bands_view(document: Mapping[str, Any], old: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return nDCG@10 by how much the asker may see, an arm a chart."""
    bands = _rows(document.get("bands"))
    before = {str(row.get("band")): row for row in _rows(old.get("bands"))}
    names = [_short(row.get("band", ""), 16).replace(" %", f"{_THIN}%") for row in bands]

    def of(row: Mapping[str, Any], arm: str) -> float | None:
        return _value(_mapping(_mapping(row.get("metrics")).get(arm)).get("ndcg@10"))

    arms = [arm for arm in _metrics(document) if any(of(row, arm) is not None for row in bands)]
    if not arms:
        return None
    charts = []
    for place, arm in enumerate(arms):
        values = [of(row, arm) for row in bands]
        earlier = [of(before.get(str(row.get("band")), {}), arm) for row in bands]
        words = f"{arm}, nDCG@10 by what the asker may see: " + ", ".join(
            f"{name}: {_score(value)}" for name, value in zip(names, values, strict=True)
        )
        charts.append(
            (
                arm,
                _charts.levels(
                    # Narrow: the unit stands above.
                    [name.removesuffix(f"{_THIN}%") for name in names],
                    values,
                    name=f"band-{place}",
                    label=words,
                    old=earlier if any(value is not None for value in earlier) else None,
                ),
            )
        )
    rows: list[dict[str, Any]] = [
        {
            "name": name,
            "queries": row.get("queries"),
            "values": [of(row, arm) for arm in arms],
            "old": [of(before.get(str(row.get("band")), {}), arm) for arm in arms],
            "p50": [_mapping(row.get("p50_ms")).get(arm) for arm in arms],
        }
        for name, row in zip(names, bands, strict=True)
    ]
    return {
        "charts": charts,
        "arms": arms,
        "rows": rows,
        "timed": any(_number(value) is not None for row in rows for value in row["p50"]),
    }


def _latency_view(document: Mapping[str, Any], old: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the percentiles of each stage's time, an arm a chart."""

    def of(run: Mapping[str, Any]) -> dict[str, list[_charts.Spread]]:
        return {
            arm: [
                _charts.Spread(
                    _short(stage, 16), *(_number(_mapping(spread).get(one)) for one in ("p50", "p95", "p99"))
                )
                for stage in _in_order(_mapping(given[arm]), SEARCH_STAGES)
                for spread in (given[arm][stage],)
            ]
            for given in (_mapping(run.get("latency_ms")),)
            for arm in _in_order(given, _ARMS)
            if _mapping(given[arm])
        }

    arms, before = of(document), of(old)
    if not arms:
        return None
    limits = _charts.scale(
        value
        for run in (arms, before)
        for spreads in run.values()
        for spread in spreads
        for value in (spread.p50, spread.p95, spread.p99)
        if value is not None
    )
    charts = []
    for place, (arm, spreads) in enumerate(arms.items()):
        words = f"{arm}, milliseconds by stage: " + "; ".join(
            f"{one.label} p50 {_ms(one.p50)}, p95 {_ms(one.p95)}, p99 {_ms(one.p99)}" for one in spreads
        )
        earlier = {one.label: one for one in before.get(arm, [])} or None
        charts.append(
            (
                arm,
                _charts.spreads(spreads, limits=limits, name=f"latency-{place}", label=words, old=earlier),
            )
        )
    rows = [
        (
            arm,
            [
                (one, next((was for was in before.get(arm, []) if was.label == one.label), None))
                for one in spreads
            ],
        )
        for arm, spreads in arms.items()
    ]
    return {"charts": charts, "rows": rows}


def _principals_view(document: Mapping[str, Any], main: str | None) -> dict[str, Any] | None:
    """Return who asked and what they got, those below the promise first."""
    people = _rows(document.get("principals"))
    if not people:
        return None
    arms = _in_order((arm for row in people for arm in _mapping(row.get("recall@10"))), _ARMS)

    def one(value: object) -> float | None:
        return _number(value.get(main or "") if isinstance(value, Mapping) else value)

    def place(row: Mapping[str, Any]) -> tuple[bool, float]:
        recall = _number(_mapping(row.get("recall@10")).get(main or ""))
        return not row.get("below_promise"), 2.0 if recall is None else recall

    rows = [
        {
            "who": _who(row.get("principals")),
            "share": row.get("share"),
            "queries": row.get("queries"),
            "recall": [(arm, _number(_mapping(row.get("recall@10")).get(arm))) for arm in arms],
            "p50": one(row.get("p50_ms")),
            "p95": one(row.get("p95_ms")),
            "ann": _number(row.get(ANN_RECALL)),
            "below": bool(row.get("below_promise")),
            "measured": _is_promise_measured(row),
        }
        for row in sorted(people, key=place)
    ]
    below = [row["who"] for row in rows if row["below"]]
    return {
        "rows": rows[:_PRINCIPALS],
        "left_out": max(0, len(rows) - _PRINCIPALS),
        "arms": arms,
        "below": below[:20],
        "below_count": len(below),
        "measured": sum(row["measured"] for row in rows),
        "promise": PROMISE,
        "total": len(rows),
    }


def _who(principals: object) -> str:
    names = [str(name) for name in principals] if isinstance(principals, list | tuple) else []
    return _short(", ".join(names) or "public", 200)


def _flat(value: object, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield the leaves of nested settings, each with its path: ``("collection.k1", "1.2")``."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _flat(inner, f"{path}.{key}" if path else str(key))
    elif value is not None or path:
        yield path, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _tuned_view(document: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return what tuning tried and proposes, a row a group of settings."""
    if not _is_tune(document):
        return None
    about = _mapping(document.get("settings"))
    proposal = _chosen(about.get("proposal"))
    reason = _short(about.get("reason") or "")
    return {
        "measure": _short(about.get("measure") or "", 40),
        "folds": about.get("folds"),
        "rows": [
            {
                **{name: one.get(name) for name in ("tried", "old", "new", "low", "high", "p_holm")},
                "counts": [one.get(name) for name in ("wins", "ties", "losses")],
                "group": _short(one.get("group", ""), 40),
                "chosen": _chosen(one.get("chosen")) or "the present ones",
            }
            for one in _rows(about.get("trials"))[:20]
        ],
        "budgets": _rows(about.get("budgets"))[:20],
        "current": _chosen(about.get("current")),
        "words": f"Proposed: {proposal} ({reason})." if proposal else f"Nothing is proposed: {reason}.",
        "applied": bool(about.get("applied")),
    }


def _chosen(settings: object) -> str:
    """Write settings in words: ``k1 0.9, weights lexical 1 dense 0.4``."""
    return _short(
        ", ".join(
            f"{name} "
            + (
                " ".join(f"{arm} {weight}" for arm, weight in value.items())
                if isinstance(value, Mapping)
                else str(value)
            )
            for name, value in _mapping(settings).items()
        )
    )


def _settings_view(document: Mapping[str, Any], against: Mapping[str, Any] | None) -> dict[str, Any] | None:
    # What tuning tried is told in its own section.
    told = ("trials", "budgets", "current", "proposal", "reason") if _is_tune(document) else ()
    given = _mapping(document.get("settings"))
    new = dict(_flat({name: value for name, value in given.items() if name not in told}))
    old = dict(_flat(_mapping((against or {}).get("settings"))))
    if not new and not old:
        return None
    rows = [
        {
            "path": _short(path),
            "value": None if new.get(path) is None else _short(new[path]),
            "old": None if old.get(path) is None else _short(old[path]),
            "changed": against is not None and new.get(path) != old.get(path),
        }
        for path in dict.fromkeys([*new, *old])
    ]
    of_run = [row for row in rows if row["value"] is not None]
    return {
        "rows": of_run[:_SETTINGS],
        "left_out": max(0, len(of_run) - _SETTINGS),
        "changed": [row for row in rows if row["changed"]],
        "json": _short(json.dumps(given, ensure_ascii=False, indent=2), _JSON_CHARACTERS),
    }


# Queries


def _listings(
    document: Mapping[str, Any], against: Mapping[str, Any] | None, main: str | None, most: int
) -> list[dict[str, Any]]:
    """Return the lists of queries, each with a heading, what it lists, its rows, and how many were left out."""
    queries = _rows(document.get("queries"))
    if not queries or main is None:
        return []
    made = []
    value_of = partial(_query_value, arm=main, measure=_main_measure(_metrics(document), main))
    if against is not None:
        before = {str(query.get("query_id")): value_of(query) for query in _rows(against.get("queries"))}
        moved = [
            (value - earlier, query)
            for query in queries
            if (value := value_of(query)) is not None
            and (earlier := before.get(str(query.get("query_id")))) is not None
            and abs(value - earlier) > 1e-9
        ]
        for title, sign in (("Queries that got worse", 1), ("Queries that got better", -1)):
            changed = sorted(
                ((change, query) for change, query in moved if sign * change < 0),
                key=lambda row: (sign * row[0], str(row[1].get("query_id"))),
            )
            if changed:
                made.append(
                    _listing(
                        title,
                        [(value_of(query), query, change) for change, query in changed],
                        main,
                        min(most, _CHANGED),
                    )
                )
    scored = [
        (value, query)
        for query in queries
        if (value := value_of(query)) is not None and (value < 1 or _lost(query))
    ]
    # Among equals first those that the search lost, then those that were refused.
    scored.sort(
        key=lambda row: (
            row[0],
            -sum(stage != _REFUSED for stage in _lost(row[1])),
            -len(_lost(row[1])),
            str(row[1].get("query_id")),
        )
    )
    if scored:
        made.append(_listing("Worst queries", [(value, query, None) for value, query in scored], main, most))
    return made


def _query_value(query: Mapping[str, Any], *, arm: str, measure: str) -> float | None:
    return _number(_mapping(_mapping(query.get("metrics")).get(arm)).get(measure))


def _lost(query: Mapping[str, Any]) -> list[str]:
    return [
        stage
        for piece in _rows(query.get("evidence"))
        if (stage := str(piece.get("stage"))) not in (_KEPT, "None")
    ]


def _listing(
    title: str, rows: Sequence[tuple[float | None, Mapping[str, Any], float | None]], main: str, most: int
) -> dict[str, Any]:
    return {
        "title": title,
        "queries": [_query_view(value, query, main, change) for value, query, change in rows[:most]],
        "total": len(rows),
        "left_out": max(0, len(rows) - most),
    }


def _query_view(
    value: float | None, query: Mapping[str, Any], main: str, change: float | None
) -> dict[str, Any]:
    evidence = sorted(
        _rows(query.get("evidence")),
        key=lambda piece: (piece.get("stage") == _KEPT, -(_number(piece.get("grade")) or 0)),
    )
    lost = Counter(_lost(query))
    given = _mapping(query.get("metrics"))
    metrics = {arm: given[arm] for arm in _in_order(given, _ARMS)}
    measures = _measures_in_order(one for values in metrics.values() for one in _mapping(values))[:8]
    stages = _mapping(_mapping(query.get("stages_ms")).get(main))
    return {
        "id": _short(query.get("query_id", ""), 80),
        "text": _short(query.get("query", "")),
        "who": _who(query.get("principals")),
        "visible": query.get("visible"),
        "share": query.get("share"),
        "value": value,
        "change": change,
        "lost": list(lost.items()),
        "judged": len(evidence),
        "measures": measures,
        "metrics": [
            (arm, [_number(_mapping(values).get(one)) for one in measures]) for arm, values in metrics.items()
        ],
        "stages": [(_short(stage, 40), stages[stage]) for stage in _in_order(stages, SEARCH_STAGES)][:12],
        "evidence": [_piece_view(piece) for piece in evidence[:_EVIDENCE]],
        "evidence_left_out": max(0, len(evidence) - _EVIDENCE),
    }


def _piece_view(piece: Mapping[str, Any]) -> dict[str, Any]:
    start, end = _number(piece.get("char_start")), _number(piece.get("char_end"))
    span = f"{_count(start)} to {_count(end)}" if start is not None and end is not None else "all of it"
    return {
        "uri": _short(piece.get("uri", ""), 200),
        "span": span,
        "grade": piece.get("grade"),
        "stage": _short(piece.get("stage", ""), 40),
        "kept": piece.get("stage") == _KEPT,
        "rank": piece.get("rank"),
        "detail": [(path, _short(value, 120)) for path, value in _flat(_mapping(piece.get("detail")))][:8],
    }
