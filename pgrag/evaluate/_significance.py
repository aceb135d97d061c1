"""Serves the stage ``evaluate``: whether two sides differ on the same queries, by more than chance would make them.

The tests are SciPy's and the correction is statsmodels'; what is compared, and what follows from it, is decided elsewhere.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pgrag.errors import PgragError
from pgrag.evaluate._extra import needs_extra

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "RESAMPLES",
    "SIGNIFICANCE",
    "Difference",
    "Pairs",
    "compare",
    "holm",
    "interval",
    "paired",
    "permutation_p",
]

SIGNIFICANCE = 0.05
"""Below this p a difference counts as one."""
RESAMPLES = 9999
"""Most assignments that a permutation test draws, and samples of a bootstrap."""

_CONFIDENCE = 0.95
# Sums of the same numbers in another order differ in the last bits, which is no difference.
_EQUAL = 1e-9
_SEED = 0
# Numbers that a test holds at once.
_AT_ONCE = 2_000_000


@dataclass(frozen=True)
class Difference:
    """One measure of two sides, on the queries that both have.

    Attributes:
        measure: Its name.
        queries: Queries that were compared.
        old: Mean of the old side.
        new: Mean of the new side.
        difference: ``new - old``.
        low: Lower end of the interval that holds the difference with a confidence of 95 %: bootstrap, BCa.
        high: Its upper end. Of one query nothing is known: -1 and 1, between which a measure can differ.
        p_permutation: How likely chance alone makes a difference as large, in either direction, by a paired permutation
            test: exact where at most 13 queries differ.
        p_t: The same by a paired t-test; where all queries differ by the same, which leaves it no variance to work with,
            it is ``p_permutation``.
        p_holm: ``p_permutation`` after Holm's correction over all measures that were compared at once.
        wins: Queries that are better on the new side.
        ties: Queries that are as good, to nine decimals.
        losses: Queries that are worse.
    """

    measure: str
    queries: int
    old: float
    new: float
    difference: float
    low: float
    high: float
    p_permutation: float
    p_t: float
    p_holm: float
    wins: int
    ties: int
    losses: int

    @property
    def is_significant(self) -> bool:
        """Whether chance alone would hardly make it, among all that was compared at once."""
        return self.p_holm < SIGNIFICANCE


@dataclass(frozen=True)
class Pairs:
    """What one measure of two sides says before it is held against other measures; attributes as of ``Difference``."""

    difference: float
    low: float
    high: float
    p_permutation: float
    p_t: float
    wins: int
    ties: int
    losses: int


def compare(
    old: Mapping[str, Mapping[str, float]], new: Mapping[str, Mapping[str, float]]
) -> list[Difference]:
    """Compare two sides measure by measure, as paired samples; the same arguments give the same numbers.

    Args:
        old: Query to measure to value, as ``Measured.per_query``.
        new: The same of the other side. Queries and measures that only one side has are left out.

    Returns:
        One for each measure that both sides have, in the order of the old side.

    Raises:
        PgragError: no query, or no measure, is on both sides; or the extra ``evaluate`` is missing.
    """
    missing = needs_extra("scipy", "statsmodels", what="comparing two runs")
    if missing is not None:
        raise missing
    queries = [query for query in old if query in new]
    if not queries:
        raise PgragError("no query is on both sides, so there is nothing to compare", None)
    common = [
        name for name in old[queries[0]] if all(name in side[one] for side in (old, new) for one in queries)
    ]
    if not common:
        raise PgragError(
            "no measure is on both sides for every query, so there is nothing to compare",
            "Measure both with the same names.",
        )
    columns = [
        (np.array([old[one][name] for one in queries]), np.array([new[one][name] for one in queries]))
        for name in common
    ]
    pairs = [paired(before, after) for before, after in columns]
    corrected = holm([one.p_permutation for one in pairs])
    return [
        Difference(
            measure=name,
            queries=len(queries),
            old=float(before.mean()),
            new=float(after.mean()),
            difference=one.difference,
            low=one.low,
            high=one.high,
            p_permutation=one.p_permutation,
            p_t=one.p_t,
            p_holm=p,
            wins=one.wins,
            ties=one.ties,
            losses=one.losses,
        )
        for name, (before, after), one, p in zip(common, columns, pairs, corrected, strict=True)
    ]


def paired(old: Sequence[float] | NDArray[np.float64], new: Sequence[float] | NDArray[np.float64]) -> Pairs:
    """Compare two sides of one measure; the values at the same place are of the same query."""
    before, after = np.asarray(old, np.float64), np.asarray(new, np.float64)
    better, worse = after > before + _EQUAL, after < before - _EQUAL
    differs = better | worse
    differences = np.where(differs, after - before, 0.0)
    p_permutation = permutation_p(before[differs], after[differs])
    low, high = interval(differences)
    return Pairs(
        difference=float(after.mean() - before.mean()),
        low=low,
        high=high,
        p_permutation=p_permutation,
        p_t=_t_test_p(differences, otherwise=p_permutation),
        wins=int(better.sum()),
        ties=int((~differs).sum()),
        losses=int(worse.sum()),
    )


def permutation_p(old: NDArray[np.float64], new: NDArray[np.float64]) -> float:
    """Return how likely chance alone makes the sums differ this much: which of a pair is whose is drawn anew.

    Fisher's randomisation test on pairs, two-sided; exact where at most 13 differ. Smucker, Allan and Carterette 2007.
    Pairs that don't differ say nothing, and may be left out.
    """
    from scipy import stats

    if len(old) < 2:
        return 1.0  # either sign of one difference is as likely
    result = stats.permutation_test(
        (new, old),
        lambda x, y, axis: np.sum(x - y, axis=axis),
        permutation_type="samples",
        n_resamples=RESAMPLES,
        batch=_batch(len(old)),
        rng=np.random.default_rng(_SEED),
    )
    return min(1.0, float(result.pvalue))


def holm(p_values: Sequence[float]) -> list[float]:
    """Correct p-values of one family, so that one below 0.05 by chance is as rare as for a single test. Holm 1979."""
    from statsmodels.stats.multitest import multipletests

    if not p_values:
        return []
    return [float(p) for p in multipletests(p_values, method="holm")[1]]


def _t_test_p(differences: NDArray[np.float64], *, otherwise: float) -> float:
    from scipy import stats

    if len(differences) < 2 or np.ptp(differences) < _EQUAL:
        return otherwise
    return float(stats.ttest_1samp(differences, 0.0).pvalue)


def interval(differences: NDArray[np.float64]) -> tuple[float, float]:
    """Return the ends of the bootstrap interval of the mean."""
    from scipy import stats

    if len(differences) < 2:
        return -1.0, 1.0
    if np.ptp(differences) < _EQUAL:
        return float(differences[0]), float(differences[0])
    for method in ("BCa", "percentile"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", stats.DegenerateDataWarning)
            ends = stats.bootstrap(
                (differences,),
                np.mean,
                confidence_level=_CONFIDENCE,
                n_resamples=RESAMPLES,
                batch=_batch(len(differences)),
                method=method,
                rng=np.random.default_rng(_SEED),
            ).confidence_interval
        if np.isfinite(ends).all():
            break  # BCa has no value where every sample lies on one side of the mean
    return float(ends.low), float(ends.high)


def _batch(size: int) -> int:
    """Return how many samples of so many numbers are held at once."""
    return max(1, _AT_ONCE // size)
