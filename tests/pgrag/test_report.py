"""The report of a run: one page that says what the run says, asks for nothing, and can be read by everybody."""

from __future__ import annotations

import base64
import copy
import hashlib
import json
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from _browser import Page, chromium, open_page
from _runs import ARMS, run_document
from selectolax.lexbor import LexborHTMLParser as Parser

from pgrag.errors import PgragError
from pgrag.evaluate import STAGES, compare_runs, funnel, read_run_file, report_html
from pgrag.evaluate import _report as report_module

pytest.importorskip("matplotlib", reason="reports need the extra evaluate: matplotlib")
pytest.importorskip("jinja2", reason="reports need the extra evaluate: jinja2")

SCRIPT = "<script>window.pwned = true</script>"
BREAKOUT = "\"'></bdi></td><img src=x onerror='window.pwned = true'>{{ 7 * 7 }}"
THIN = "\u202f"
CSS = (Path(report_module.__file__).parent / "templates" / "report.css").read_text(encoding="utf-8")


def text_of(page: str, selector: str) -> str:
    found = Parser(page).css_first(selector)
    assert found is not None, selector
    return found.text()


def rows_of(page: str, table: str) -> list[list[str]]:
    return [[cell.text() for cell in row.css("th, td")] for row in Parser(page).css(f"{table} tbody tr")]


def number(text: str) -> int:
    return int(text.replace(THIN, "").replace("−", "-"))


def tuning() -> dict[str, Any]:
    """A run of ``pgrag eval tune``, as it is kept."""
    trial = {"group": "bm25", "tried": 20, "old": 0.5, "new": 0.625, "low": 0.0625, "high": 0.1875, "p": 0.01}
    trial |= {"p_holm": 0.02, "wins": 12, "ties": 10, "losses": 2, "chosen": {"b": 0.3}, "chosen_by_fold": []}
    settings = {"kind": "tune", "folds": 5, "measure": "ndcg@10", "queries": 24, "sweep": {"b": [0.3, 0.75]}}
    settings |= {
        "current": {"k1": 1.2, "b": 0.75, "weights": {"lexical": 1, "dense": 0.4}},
        "trials": [trial],
    }
    settings |= {"proposal": {"b": 0.3}, "reason": "bm25: 0.500 to 0.625, p = 0.020", "applied": False}
    settings |= {"budgets": [{"tokens": 500, "recall": 0.75, "p_holm": 1.0}]}
    return {"run_id": 9, "metrics": {"bm25": {"ndcg@10": 0.625}}, "queries": [], "settings": settings}


def hostile() -> dict[str, Any]:
    """A run of which every text was written by somebody who wants to run a script in the reader's browser."""
    run = run_document(12)
    for query in run["queries"]:
        query["query"], query["query_id"] = SCRIPT, BREAKOUT + query["query_id"]
        query["principals"] = [BREAKOUT]
        for piece in query["evidence"]:
            piece["uri"], piece["detail"] = "javascript:alert(1)//" + SCRIPT, {BREAKOUT: SCRIPT}
    run |= {
        "name": SCRIPT,
        "collection": BREAKOUT,
        "metrics": {BREAKOUT: run["metrics"]["hybrid"], **run["metrics"]},
    }
    run["settings"] |= {SCRIPT: BREAKOUT, "notes": [SCRIPT]}
    run["counterfactuals"][0]["setting"] = SCRIPT
    for band in run["bands"]:
        band["band"] = SCRIPT
    for person in run["principals"]:
        person["principals"] = [SCRIPT]
    run["latency_ms"][SCRIPT] = {SCRIPT: {"p50": 1.0, "p95": 2.0, "p99": 3.0}}
    run["system"][SCRIPT] = BREAKOUT
    return run


@pytest.fixture(scope="module")
def run() -> dict[str, Any]:
    return run_document(60)


@pytest.fixture(scope="module")
def page(run: dict[str, Any]) -> str:
    return report_html(run)


@pytest.fixture(scope="module")
def earlier() -> dict[str, Any]:
    return run_document(60, seed=2, better=-0.05, run_id=6, measures=["ndcg@10", "recall@10"])


@pytest.fixture(scope="module")
def comparison(run: dict[str, Any], earlier: dict[str, Any]) -> str:
    return report_html(run, earlier)


# The funnel


def test_each_step_of_the_funnel_is_what_was_left_less_what_it_lost() -> None:
    ledger = {
        "not_ingested": 1,
        "split": 2,
        "representation": 4,
        "ann": 8,
        "fusion": 16,
        "pack": 32,
        "kept": 64,
    }
    steps = [(step.stage, step.lost, step.left) for step in funnel(ledger)]
    assert steps == [
        (None, 0, 127),
        ("not_ingested", 1, 127 - 1),
        ("not_permitted", 0, 127 - 1),
        ("split", 2, 127 - 1 - 2),
        ("representation", 4, 127 - 1 - 2 - 4),
        ("ann", 8, 127 - 1 - 2 - 4 - 8),
        ("fusion", 16, 127 - 1 - 2 - 4 - 8 - 16),
        ("pack", 32, 64),
    ]


def test_reranking_has_a_step_where_it_lost_something_or_was_there() -> None:
    def stages(**more: Any) -> list[str | None]:
        return [step.stage for step in funnel({"kept": 1, "rerank": more.pop("lost", 0)}, **more)]

    assert "rerank" not in stages()
    assert "rerank" in stages(lost=1)
    assert "rerank" in stages(reranked=True)


def test_a_stage_that_the_report_does_not_know_is_counted_too() -> None:
    assert [(step.label, step.lost, step.left) for step in funnel({"kept": 3, "late_chunking": 2})][-1] == (
        "After late_chunking",
        2,
        3,
    )


def test_the_funnel_has_a_step_for_every_stage_of_the_ledger() -> None:
    assert [step.stage for step in funnel({}, reranked=True)] == [None, *STAGES[:-1]]


def test_the_page_counts_what_the_ledger_counts(run: dict[str, Any], page: str) -> None:
    rows = Parser(page).css("#evidence .pair tbody tr")
    shown = {
        row.attributes["data-stage"]: [number(cell.text().split()[0]) for cell in row.css("td.n")[::2]]
        for row in rows
    }
    assert shown["judged"][0] == sum(run["ledger"].values())
    assert shown["pack"][0] == run["ledger"]["kept"]
    lost = {stage: -values[1] for stage, values in shown.items() if stage != "judged"}
    assert lost == {stage: run["ledger"].get(stage, 0) for stage in lost}
    assert sum(lost.values()) + run["ledger"]["kept"] == sum(run["ledger"].values())


def test_a_run_without_a_ledger_is_counted_by_its_evidence(run: dict[str, Any], page: str) -> None:
    less = {key: value for key, value in run.items() if key != "ledger"}
    assert text_of(report_html(less), "#evidence") == text_of(page, "#evidence")


# What is shown


def test_every_mean_of_the_run_is_in_the_table(run: dict[str, Any], page: str) -> None:
    rows = rows_of(page, "#metrics > .scroll table")
    assert [row[0] for row in rows] == list(ARMS)
    for arm, *cells in rows:
        assert [cell[:5] for cell in cells] == [f"{value:.3f}" for value in run["metrics"][arm].values()]


def test_intervals_stand_beneath_the_means(run: dict[str, Any], page: str) -> None:
    low, high = run["intervals"]["hybrid"]["ndcg@10"]
    (hybrid,) = [row for row in rows_of(page, "#metrics > .scroll table") if row[0] == "hybrid"]
    assert hybrid[1].endswith(f"{low:.3f} to {high:.3f}")


def test_whoever_is_below_the_promise_is_named_first(page: str) -> None:
    assert "group:hr" in text_of(page, "#askers .lead")
    rows = rows_of(page, "#askers table")
    assert rows[0][0] == "group:hr"
    assert [("below" in row[1]) for row in rows] == [True, False, False, False, False]


def test_a_promise_that_was_not_measured_is_not_said_to_be_kept(run: dict[str, Any]) -> None:
    people = [
        {key: value for key, value in person.items() if key != "ann_recall@10"} | {"below_promise": False}
        for person in run["principals"]
    ]
    page = report_html({**run, "principals": people})
    assert "nothing is known" in text_of(page, "#askers .lead")
    assert {row[1] for row in rows_of(page, "#askers table")} == {"–"}
    assert "promise" not in text_of(page, ".headline")


def test_the_worst_query_comes_first_with_its_ledger(run: dict[str, Any], page: str) -> None:
    worst = min(run["queries"], key=lambda query: query["metrics"]["hybrid"]["ndcg@10"])
    first = Parser(page).css_first("details.query")
    assert first is not None
    assert worst["metrics"]["hybrid"]["ndcg@10"] == float(first.css_first(".value").text())  # type: ignore[union-attr]
    shown = next(query for query in run["queries"] if query["query"] == first.css_first(".text").text())  # type: ignore[union-attr]
    assert sorted(cell.text() for cell in first.css(".uri")) == sorted(
        piece["uri"] for piece in shown["evidence"]
    )


def test_the_list_of_queries_says_who_asked_each() -> None:
    queries = [
        {
            "query_id": name,
            "query": name,
            "principals": [f"user:{name}"],
            "metrics": {"lexical": {"ndcg@10": 0}},
        }
        for name in ("ana", "bo")
    ]
    page = report_html({"metrics": {"lexical": {"ndcg@10": 0.0}}, "queries": queries})
    assert [one.text() for one in Parser(page).css("details.query summary .asker")] == ["user:ana", "user:bo"]


def test_among_equals_what_the_search_lost_comes_before_what_was_refused() -> None:
    def asked(query: str, *stages: str) -> dict[str, Any]:
        evidence = [{"uri": "a", "grade": 1, "stage": stage} for stage in stages]
        return {
            "query_id": query,
            "query": query,
            "metrics": {"lexical": {"ndcg@10": 0}},
            "evidence": evidence,
        }

    queries = [asked("a", "not_permitted", "not_permitted"), asked("b", "kept"), asked("c", "split")]
    page = report_html({"metrics": {"lexical": {"ndcg@10": 0.0}}, "queries": queries})
    assert [text.text() for text in Parser(page).css("details.query .text")] == ["c", "a", "b"]


def test_the_largest_loss_is_one_of_the_search() -> None:
    ledger = {"not_permitted": 7, "ann": 2, "fusion": 1, "kept": 90}
    page = report_html({"metrics": {"lexical": {"ndcg@10": 0.5}}, "ledger": ledger})
    assert text_of(page, "#evidence .lead") == (
        f"Of 100 pieces of judged evidence 90 were kept (90{THIN}%), and 7 the asker may not read."
        " The largest loss beside these, 2, was at “ann”: among the nearest, but the approximate index did not find it."
    )


def test_what_would_have_kept_evidence_is_said(page: str) -> None:
    assert ["ann", "index_effort", "4", "8", "7 of 9", ""] in rows_of(page, "#evidence table.narrow")


def test_settings_that_would_have_brought_nothing_are_only_counted(run: dict[str, Any]) -> None:
    useless = {"stage": "fusion", "setting": "rrf_k", "value": 10, "passes": 0, "keeps": 0, "of": 5}
    page = report_html({**run, "counterfactuals": [run["counterfactuals"][2], useless, useless]})
    assert rows_of(page, "#evidence table.narrow") == [
        ["fusion", "weights", '{"dense": 2}', "3", "2 of 5", ""]
    ]
    assert "2 settings that were tried as well would have brought nothing" in text_of(page, "#evidence")


def test_the_order_is_that_of_people_whatever_the_database_made_of_it(run: dict[str, Any], page: str) -> None:
    def turned(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: turned(value[key]) for key in reversed(value)}
        return [turned(one) for one in value] if isinstance(value, list) else value

    again = report_html(turned(run))
    for selector in ("#metrics", "#visibility", "#askers", "#latency"):
        assert text_of(again, selector) == text_of(page, selector)


def test_settings_are_all_there_and_the_command_that_repeats_the_run(page: str) -> None:
    settings = dict(rows_of(page, "#settings table"))
    assert settings["collection.k1"] == "1.2"
    assert settings["versions.pgvector"] == "0.8.1"
    assert "pgrag eval run --again 7" in text_of(page, "#settings .lead")


@pytest.mark.parametrize(
    ("key", "section"),
    [
        ("bands", "visibility"),
        ("principals", "askers"),
        ("latency_ms", "latency"),
        ("queries", "queries"),
        ("system", "system"),
        ("settings", "settings"),
    ],
)
def test_what_a_run_lacks_the_page_lacks(run: dict[str, Any], key: str, section: str) -> None:
    page = report_html({name: value for name, value in run.items() if name != key})
    parsed = Parser(page)
    assert parsed.css_first(f"#{section}") is None
    assert parsed.css_first(f'nav a[href="#{section}"]') is None


def test_means_alone_make_a_page() -> None:
    page = report_html({"metrics": {"lexical": {"ndcg@10": 0.5}}})
    assert [row[:2] for row in rows_of(page, "#metrics table")] == [["lexical", "0.500"]]
    assert [section.attributes["id"] for section in Parser(page).css("section")] == ["metrics"]


def test_a_run_without_measures_is_refused() -> None:
    with pytest.raises(PgragError, match="run 3 has no measures"):
        report_html({"run_id": 3, "metrics": {"passed": True}})


def test_what_is_no_number_is_said_to_be_unknown() -> None:
    page = report_html({"metrics": {"lexical": {"ndcg@10": float("nan"), "mrr": "high", "map": None}}})
    assert rows_of(page, "#metrics table") == [["lexical", "–", "–", "–"]]


def test_a_number_too_large_for_a_chart_is_said_to_be_unknown(run: dict[str, Any]) -> None:
    odd = run | {
        "counterfactuals": [{"stage": "ann", "keeps": 10**400, "of": 10**400}],
        "ledger": {"kept": 10**400},
    }
    assert "<title>" in report_html(odd)


def test_figures_of_answers_that_lack_something_make_a_page(run: dict[str, Any]) -> None:
    assert "<title>" in report_html(run | {"answers": {"figures": [{}, {"metric": None, "mean": "high"}]}})


def test_judged_answers_have_a_table(run: dict[str, Any]) -> None:
    figure = {"metric": "faithfulness", "mean": 0.9, "judged": 40, "unjudged": 1, "labels": 12}
    figure |= {"estimate": 0.85, "low": 0.8, "high": 0.9, "why_none": None}
    page = report_html({**run, "answers": {"figures": [figure]}})
    assert rows_of(page, "#answers table") == [
        ["Faithfulness", "0.900", "40", "1", "12", "0.850", "0.800 to 0.900"]
    ]


@pytest.fixture
def answers_run() -> dict[str, Any]:
    """A run of judged answers, as it is kept."""
    figure = {"metric": "context_recall", "mean": 0.5, "judged": 2, "unjudged": 0, "labels": 0}
    queries = [
        {"query_id": f"q{n}", "query": "Why?", "metrics": {"answers": {"context_recall": n}}, "evidence": []}
        for n in range(2)
    ]
    return {
        "run_id": 8,
        "metrics": {"answers": {"context_recall": 0.5}},
        "queries": queries,
        "ledger": {},
        "answers": {"figures": [figure]},
        "settings": {
            "kind": "answers",
            "encoder": {"training": {f"step{n}": "x" * 1000 for n in range(300)}},
        },
    }


def test_a_run_of_answers_speaks_of_no_arms_and_no_evidence(answers_run: dict[str, Any]) -> None:
    page = report_html(answers_run)
    assert text_of(page, "#metrics h2") == "Measures"
    assert text_of(page, "#queries h2") == "Queries"
    assert "Bold" not in text_of(page, "#metrics .lead")
    assert "evidence" not in text_of(page, "#queries .lead")


def test_metrics_of_answers_are_titled_in_words(answers_run: dict[str, Any]) -> None:
    page = report_html(answers_run)
    assert text_of(page, "#answers tbody th") == "Context recall"
    assert text_of(page, ".headline dt") == "Context recall"


def test_settings_are_closed_and_capped_and_those_left_out_are_counted(answers_run: dict[str, Any]) -> None:
    page = report_html(answers_run)
    assert all("open" not in one.attributes for one in Parser(page).css("#settings details"))
    assert len(rows_of(page, "#settings table")) == 100
    assert max(len(cell) for row in rows_of(page, "#settings table") for cell in row) == 400
    assert "201 more are left out" in text_of(page, "#settings .legend")


# Of tuning


@pytest.fixture
def tune_run() -> dict[str, Any]:
    return tuning()


def test_a_run_of_tuning_has_its_trials_in_a_table(tune_run: dict[str, Any]) -> None:
    page = report_html(tune_run)
    trials, budgets = rows_of(page, "#tuned table")
    assert trials == ["bm25", "20", "0.500", "0.625", "+0.062 to +0.188", "0.020", "12, 10, 2", "b 0.3"]
    assert budgets == ["500", "0.750", "1.000"]
    assert "Proposed: b 0.3 (bm25: 0.500 to 0.625, p = 0.020)." in text_of(page, "#tuned .lead")
    assert "k1 1.2, b 0.75, weights lexical 1 dense 0.4" in text_of(page, "#tuned")


def test_a_run_of_tuning_has_no_arms_and_its_own_number_of_queries(tune_run: dict[str, Any]) -> None:
    page = report_html(tune_run)
    assert Parser(page).css_first("#metrics") is None
    assert "24 judged queries" in text_of(page, "header")
    assert not any("trials" in row[0] for row in rows_of(page, "#settings table"))


def test_budgets_alone_make_a_page(tune_run: dict[str, Any]) -> None:
    tune_run["metrics"], tune_run["settings"]["trials"] = {}, []
    assert rows_of(report_html(tune_run), "#tuned table") == [["500", "0.750", "1.000"]]


def test_a_run_of_tuning_is_held_against_nothing(tune_run: dict[str, Any], run: dict[str, Any]) -> None:
    with pytest.raises(PgragError, match="run 9 tuned settings"):
        report_html(run, tune_run)


# Beside an earlier run


def test_differences_are_those_of_the_comparison(
    run: dict[str, Any], earlier: dict[str, Any], comparison: str
) -> None:
    expected = {(one.arm, one.figures.measure): one.figures for one in compare_runs(earlier, run).arms}
    (first, *_) = rows_of(comparison, "#metrics > .scroll table")
    one = expected["hybrid", "ndcg@10"]
    assert first[0:5] == [
        "hybrid",
        "nDCG@10",
        f"{one.old:.3f}",
        f"{one.new:.3f}",
        ("significant " if one.p_holm < 0.05 else "") + f"{one.difference:+.3f}",
    ]
    assert first[7] == f"{one.wins}, {one.ties}, {one.losses}"


def test_settings_that_differ_are_listed(comparison: str) -> None:
    assert rows_of(comparison, "#settings > .scroll table") == [["depth", "200", "100"]]


def test_queries_that_moved_are_listed_by_how_far(comparison: str) -> None:
    titles = [title.text() for title in Parser(comparison).css("#queries h3")]
    assert titles == ["Queries that got worse", "Queries that got better", "Worst queries"]
    changes = [
        float(small.text().replace("−", "-")) for small in Parser(comparison).css("#queries .value small")
    ]
    worse = [change for change in changes if change < 0]
    assert worse == sorted(worse)
    assert changes[len(worse) :] == sorted(changes[len(worse) :], reverse=True)


def test_another_judged_set_is_said_to_be_one(run: dict[str, Any], earlier: dict[str, Any]) -> None:
    fewer = {**earlier, "queries": earlier["queries"][:50]}
    assert "0 queries are only in the earlier run and 10 only in this one" in report_html(run, fewer)


# Size


def test_a_thousand_queries_make_a_page_below_a_megabyte_that_says_what_it_leaves_out() -> None:
    run = run_document(1000)
    page = report_html(run)
    assert len(page.encode()) < 1_000_000
    shown, total, left_out = map(number, re.findall(rf"[\d{THIN}]+", text_of(page, "#queries h3 + .legend")))
    assert shown == len(Parser(page).css("details.query")) == 50
    assert total == sum(
        query["metrics"]["hybrid"]["ndcg@10"] < 1
        or any(piece["stage"] != "kept" for piece in query["evidence"])
        for query in run["queries"]
    )
    assert left_out == total - shown


def test_long_texts_do_not_make_a_large_page() -> None:
    run = run_document(200)
    for query in run["queries"]:
        query["query"] = '"<' * 50_000
        query["evidence"] = [
            {**query["evidence"][0], "uri": "<" * 9000, "detail": {"&" * 500: '"' * 5000}} for _ in range(100)
        ]
    page = report_html(run)
    assert len(page.encode()) < 1_000_000
    assert Parser(page).css("details.query") != []


def test_the_same_run_makes_the_same_page(run: dict[str, Any], page: str) -> None:
    assert report_html(copy.deepcopy(run)) == page


# What was written by others


def test_texts_of_a_run_never_become_markup() -> None:
    parsed = Parser(report_html(hostile(), hostile()))
    assert len(parsed.css("script")) == 1
    assert parsed.css("img, iframe, object, embed, form, link[rel=stylesheet]") == []
    assert [
        a.attributes["href"] for a in parsed.css("a") if not (a.attributes["href"] or "").startswith("#")
    ] == []
    assert [name for node in parsed.css("*") for name in node.attributes if name.startswith("on")] == []
    assert SCRIPT in {text.text() for text in parsed.css("details.query .text")}
    assert parsed.css_first("h1").text() == BREAKOUT  # type: ignore[union-attr]


def test_a_dollar_sign_in_a_name_is_no_formula(run: dict[str, Any]) -> None:
    page = report_html({**run, "bands": [{**run["bands"][0], "band": r"$\frac{1}{2}$"}]})
    assert r"$\frac{1}{2}$" in {text.text() for text in Parser(page).css("#visibility svg text")}


@pytest.mark.parametrize("which", ["page", "comparison"])
def test_only_its_own_style_and_script_are_allowed(which: str, request: pytest.FixtureRequest) -> None:
    page = request.getfixturevalue(which)
    parsed = Parser(page)
    policy = parsed.css_first("meta[http-equiv=Content-Security-Policy]").attributes["content"]  # type: ignore[union-attr]
    digests = {
        tag: base64.b64encode(
            hashlib.sha256(re.search(rf"<{tag}>(.*?)</{tag}>", page, re.S)[1].encode()).digest()
        )  # type: ignore[index]
        for tag in ("style", "script")
    }
    assert policy == (
        f"default-src 'none'; style-src 'sha256-{digests['style'].decode()}';"
        f" script-src 'sha256-{digests['script'].decode()}'; img-src data:; base-uri 'none'; form-action 'none'"
    )
    assert [node.tag for node in parsed.css("[style]")] == []


def test_no_address_of_another_place_is_in_the_page(comparison: str) -> None:
    parsed = Parser(comparison)
    addresses = [
        value
        for node in parsed.css("*")
        for name, value in node.attributes.items()
        if name in ("src", "href", "srcset", "action", "poster", "data")
    ]
    assert [one for one in addresses if not (one or "").startswith(("#", "data:,"))] == []
    assert re.findall(r"url\((?!#)|@import|fetch\(|XMLHttpRequest", comparison) == []


# For everybody


@pytest.mark.parametrize("which", ["page", "comparison"])
def test_the_page_can_be_read_out(which: str, request: pytest.FixtureRequest) -> None:
    parsed = Parser(request.getfixturevalue(which))
    html = parsed.css_first("html")
    assert html is not None
    assert html.attributes["lang"] == "en"
    assert text_of(request.getfixturevalue(which), "title").startswith("handbook: run 7")
    levels = [int(heading.tag[1]) for heading in parsed.css("h1, h2, h3, h4")]
    assert levels.count(1) == 1
    assert [(above, below) for above, below in pairwise(levels) if below > above + 1] == []
    assert [svg for svg in parsed.css("svg.chart") if not svg.attributes.get("aria-label")] == []
    assert [th for th in parsed.css("th") if not th.attributes.get("scope")] == []
    ids = [node.attributes["id"] for node in parsed.css("[id]")]
    assert len(ids) == len(set(ids))


def test_every_chart_has_a_table_in_its_section(page: str) -> None:
    for section in Parser(page).css("section"):
        if section.css("svg.chart"):
            assert section.css("table") != [], section.attributes["id"]


def test_references_within_charts_lead_somewhere(comparison: str) -> None:
    ids = {node.attributes["id"] for node in Parser(comparison).css("[id]")}
    wanted = set(re.findall(r"url\(#([^)]+)\)", comparison)) | set(
        re.findall(r'<use[^>]* href="#([^"]+)"', comparison)
    )
    assert wanted
    assert wanted <= ids


def luminance(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("colour", ["ink", "quiet", "strong", "loss"])
def test_text_has_the_contrast_of_wcag_aa(theme: str, colour: str) -> None:
    found = re.findall(r"--(\w+): light-dark\((#\w{6}), (#\w{6})\)", CSS)
    colours = {name: light if theme == "light" else dark for name, light, dark in found}
    for ground in ("paper", "raised"):
        bright, dim = sorted((luminance(colours[colour]), luminance(colours[ground])), reverse=True)
        assert (bright + 0.05) / (dim + 0.05) >= 4.5


# Errors


def test_a_missing_library_is_named_with_the_command_that_brings_it(
    run: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = report_module.needs_extra.__globals__["importlib"].util.find_spec
    monkeypatch.setattr(
        "importlib.util.find_spec", lambda name, *more: None if name == "jinja2" else found(name, *more)
    )
    with pytest.raises(PgragError, match="a report needs jinja2") as caught:
        report_html(run)
    assert caught.value.hint == "pip install 'pgrag-rls[evaluate]'"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "isn't JSON"),
        ("[" * 100_000, "isn't JSON"),
        ("[]", "isn't a run's document"),
        ('{"metrics": {}}', "isn't a run's document"),
        ('{"lexical": {"ndcg@10": 0.5}}', "isn't a run's document"),
    ],
)
def test_a_file_that_holds_no_run_is_refused(tmp_path: Path, content: str, words: str) -> None:
    (tmp_path / "run.json").write_text(content)
    with pytest.raises(PgragError, match=words):
        read_run_file(tmp_path / "run.json")


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PgragError, match=r"nowhere\.json can't be read: No such file"):
        read_run_file(tmp_path / "nowhere.json")


def test_a_file_gives_back_the_run(tmp_path: Path, run: dict[str, Any]) -> None:
    (tmp_path / "run.json").write_text(json.dumps(run))
    assert read_run_file(tmp_path / "run.json") == run


# In a browser

in_a_browser = pytest.mark.skipif(chromium() is None, reason="needs Chromium: apt-get install chromium")
BACKGROUND = "getComputedStyle(document.body).backgroundColor"
BAR = "getComputedStyle(document.querySelector('#evidence .fill-strong')).fill"


def rgb(name: str, theme: str) -> str:
    light, dark = re.search(rf"--{name}: light-dark\((#\w{{6}}), (#\w{{6}})\)", CSS).groups()  # type: ignore[union-attr]
    colour = light if theme == "light" else dark
    return f"rgb({', '.join(str(int(colour[place : place + 2], 16)) for place in (1, 3, 5))})"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with open_page(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture(scope="module")
def addresses(tmp_path_factory: pytest.TempPathFactory, page: str, comparison: str) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("reports")
    tuned = tuning()
    tuned["settings"] |= {"reason": SCRIPT, "current": {BREAKOUT: SCRIPT}, "measure": SCRIPT}
    tuned["settings"]["trials"][0] |= {"group": BREAKOUT, "chosen": {SCRIPT: BREAKOUT}}
    pages = {"run": page, "comparison": comparison, "hostile": report_html(hostile())}
    pages["tuning"] = report_html(tuned)
    for name, text in pages.items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    return {name: (folder / f"{name}.html").as_uri() for name in pages}


@in_a_browser
@pytest.mark.parametrize("which", ["run", "comparison", "hostile", "tuning"])
def test_a_browser_has_nothing_to_complain_of_and_asks_for_the_page_alone(
    browser: Page, addresses: dict[str, str], which: str
) -> None:
    browser.go(addresses[which])
    assert browser.evaluate("document.querySelector('#theme').hidden") is False  # so the script ran
    assert browser.complaints == []
    assert browser.requests == [addresses[which]]
    assert browser.evaluate("typeof window.pwned") == "undefined"


@in_a_browser
def test_the_policy_stops_a_script_that_got_in(browser: Page, addresses: dict[str, str]) -> None:
    browser.go(addresses["run"])
    browser.evaluate(
        "(() => { const s = document.createElement('script'); s.textContent = 'window.pwned = true';"
        " document.body.append(s); })()"
    )
    assert browser.evaluate("typeof window.pwned") == "undefined"


@in_a_browser
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_theme_is_the_systems(browser: Page, addresses: dict[str, str], theme: str) -> None:
    browser.prefer(prefers_color_scheme=theme)
    browser.go(addresses["run"])
    assert (browser.evaluate(BACKGROUND), browser.evaluate(BAR)) == (
        rgb("paper", theme),
        rgb("strong", theme),
    )


@in_a_browser
def test_the_theme_can_be_chosen(browser: Page, addresses: dict[str, str]) -> None:
    browser.prefer(prefers_color_scheme="light")
    browser.go(addresses["run"])
    seen = []
    for _ in range(3):
        browser.evaluate("document.querySelector('#theme').click()")
        seen.append(
            (browser.evaluate("document.querySelector('#theme').textContent"), browser.evaluate(BACKGROUND))
        )
    assert seen == [
        ("Theme: light", rgb("paper", "light")),
        ("Theme: dark", rgb("paper", "dark")),
        ("Theme: system", rgb("paper", "light")),
    ]


@in_a_browser
def test_an_address_can_name_the_theme(browser: Page, addresses: dict[str, str]) -> None:
    browser.prefer(prefers_color_scheme="light")
    browser.go(addresses["run"] + "#dark")
    assert browser.evaluate(BACKGROUND) == rgb("paper", "dark")


@in_a_browser
@pytest.mark.parametrize("width", [320, 400, 768, 1280])
@pytest.mark.parametrize("which", ["run", "comparison", "hostile", "tuning"])
def test_no_width_makes_the_page_scroll_sideways(
    browser: Page, addresses: dict[str, str], which: str, width: int
) -> None:
    browser.resize(width)
    browser.go(addresses[which])
    browser.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    assert browser.evaluate("document.documentElement.scrollWidth <= innerWidth")


@in_a_browser
def test_queries_can_be_chosen_by_what_lost_their_evidence(browser: Page, addresses: dict[str, str]) -> None:
    browser.go(addresses["run"])
    shown = browser.evaluate(
        "(() => { const select = document.querySelector('#stage'); select.value = 'split';"
        " select.dispatchEvent(new Event('change'));"
        " return [...document.querySelectorAll('details.query:not([hidden])')].map((one) => one.dataset.lost); })()"
    )
    assert shown
    assert [lost for lost in shown if "split" not in lost.split()] == []


@in_a_browser
def test_on_paper_everything_is_open_and_light(browser: Page, addresses: dict[str, str]) -> None:
    browser.go(addresses["run"] + "#dark")
    browser.call("Emulation.setEmulatedMedia", media="print")
    try:
        assert browser.evaluate(BACKGROUND) == rgb("paper", "light")
        heights = browser.evaluate(
            "[...document.querySelectorAll('details.query .inside')].map((one) => one.checkVisibility({contentVisibilityAuto: true}))"
        )
        assert heights
        assert all(heights)
        assert browser.evaluate("getComputedStyle(document.querySelector('#theme')).display") == "none"
    finally:
        browser.call("Emulation.setEmulatedMedia", media="")
