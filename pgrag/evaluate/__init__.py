"""Serves the stage ``evaluate``: judged queries, and what is measured by them.

Searching, judging who may see what, and keeping the figures is SQL; the libraries that measure are in the extra ``evaluate``.
"""

from pgrag.evaluate._answers import (
    ANSWER_METRICS,
    ANSWER_NEEDS,
    FEWEST_LABELS,
    Answer,
    AnswerFigure,
    JudgedAnswer,
    answer_figures,
    judge_answers,
    keep_answers,
    read_answers,
    read_labels,
)
from pgrag.evaluate._beir import export_beir, import_beir
from pgrag.evaluate._compare import (
    ArmDifference,
    RunComparison,
    SettingDifference,
    compare_runs,
    setting_differences,
)
from pgrag.evaluate._extra import needs_extra
from pgrag.evaluate._gate import Comparison, Verdict, compare_spaces, has_judged
from pgrag.evaluate._judge import Judge, JudgeError, Unjudged
from pgrag.evaluate._judged import Import, JudgedQuery, Judgement, forget_judged, import_judged, judged
from pgrag.evaluate._ledger import (
    STAGES,
    Counterfactual,
    Evidence,
    Trace,
    counterfactuals,
    ledger,
    space_of,
    trace,
)
from pgrag.evaluate._measures import DEFAULT_MEASURES, MEASURES, Measured, measure, ranking
from pgrag.evaluate._principals import PROMISE
from pgrag.evaluate._report import Step, funnel, read_run_file, report_html
from pgrag.evaluate._run import ARMS, Options, RunDocument, evaluate_collection, load_run, options_of
from pgrag.evaluate._runs import Run, drop_run, list_runs
from pgrag.evaluate._significance import Difference, compare
from pgrag.evaluate._system import SEARCH_STAGES
from pgrag.evaluate._trec import export_trec, import_trec
from pgrag.evaluate._trec_run import Export
from pgrag.evaluate._tune import Budget, Trial, Tuning, tune_collection

__all__ = [
    "ANSWER_METRICS",
    "ANSWER_NEEDS",
    "ARMS",
    "DEFAULT_MEASURES",
    "FEWEST_LABELS",
    "MEASURES",
    "PROMISE",
    "SEARCH_STAGES",
    "STAGES",
    "Answer",
    "AnswerFigure",
    "ArmDifference",
    "Budget",
    "Comparison",
    "Counterfactual",
    "Difference",
    "Evidence",
    "Export",
    "Import",
    "Judge",
    "JudgeError",
    "JudgedAnswer",
    "JudgedQuery",
    "Judgement",
    "Measured",
    "Options",
    "Run",
    "RunComparison",
    "RunDocument",
    "SettingDifference",
    "Step",
    "Trace",
    "Trial",
    "Tuning",
    "Unjudged",
    "Verdict",
    "answer_figures",
    "compare",
    "compare_runs",
    "compare_spaces",
    "counterfactuals",
    "drop_run",
    "evaluate_collection",
    "export_beir",
    "export_trec",
    "forget_judged",
    "funnel",
    "has_judged",
    "import_beir",
    "import_judged",
    "import_trec",
    "judge_answers",
    "judged",
    "keep_answers",
    "ledger",
    "list_runs",
    "load_run",
    "measure",
    "needs_extra",
    "options_of",
    "ranking",
    "read_answers",
    "read_labels",
    "read_run_file",
    "report_html",
    "setting_differences",
    "space_of",
    "trace",
    "tune_collection",
]
