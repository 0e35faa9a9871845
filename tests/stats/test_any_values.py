"""Whatever values: a defined answer without NaN, or a refusal that says what to do; never a warning."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from loadstone import OptionError
from loadstone.stats import (
    curves,
    equivalence,
    history,
    intervals,
    levels,
    means,
    outliers,
    planning,
    ranks,
    series,
    steady,
    variances,
)


def blocks(a, b):
    return range(len(a)), range(len(b))


def judged(found, runs):
    return found and (found, found.answer(0.05, runs), found.p_same(0.05))


QUESTIONS = {
    "t interval": lambda a, b: intervals.t_interval(a),
    "bootstrap": lambda a, b: intervals.bootstrap(a, resamples=200),
    "bootstrap of a median": lambda a, b: intervals.bootstrap(a, np.median, resamples=200),
    "ratio": lambda a, b: intervals.ratio(a, b),
    "paired ratio": lambda a, b: intervals.ratio(a, b, blocks(a, b)),
    "t test": means.t_test,
    "Welch": lambda a, b: means.t_test(a, b, "welch"),
    "paired t": lambda a, b: means.t_test(a, b, blocks=blocks(a, b)),
    "arithmetic": lambda a, b: means.mean_of(a),
    "harmonic": lambda a, b: means.mean_of(a, "harmonic"),
    "geometric": lambda a, b: means.mean_of(a, "geometric"),
    "F": variances.f_test,
    "Levene": variances.levene,
    "Mann-Whitney": ranks.mann_whitney,
    "Brunner-Munzel": ranks.brunner_munzel,
    "same ratio": lambda a, b: judged(equivalence.ratio(a, b), len(a)),
    "same difference": lambda a, b: judged(equivalence.difference(a, b), len(a)),
    "runs to decide": lambda a, b: equivalence.runs_to_decide(a, b, 0.05),
    "variance by level": lambda a, b: planning.variance_by_level([list(a), list(b)]),
    "first level": lambda a, b: levels.first_that_differs((0, 1), [a, b]),
    "change point": lambda a, b: levels.change_point((0, 1), [a, b], resamples=50),
    "batch means": lambda a, b: series.batch_means(np.r_[a, b, a, b]),
    "state": lambda a, b: steady.classify(np.r_[a, b]),
    "outliers": lambda a, b: outliers.flag(a),
    "ECDF": lambda a, b: curves.ecdf(a),
    "QQ": lambda a, b: curves.qq(a),
    "LOESS": lambda a, b: curves.loess(np.arange(len(a)), a),
    "LOESS of them": lambda a, b: curves.loess(a, np.arange(len(a))),
    "history": lambda a, b: history.steps(np.r_[a, b], permutations=39),
}

VALUES = (
    lambda rng, n: np.full(n, 0.1),
    lambda rng, n: np.full(n, 1e150),
    lambda rng, n: rng.choice([0.0, 1.0], n),
    lambda rng, n: rng.choice([5e-324, 1.0], n),
    lambda rng, n: 1e149 * rng.standard_normal(n),
    lambda rng, n: 1e-160 * rng.standard_normal(n),
    lambda rng, n: 1e9 + 1e-7 * rng.integers(0, 2, n),
    lambda rng, n: rng.lognormal(0, 3, n),
    lambda rng, n: -rng.lognormal(0, 1, n),
    lambda rng, n: rng.choice([math.nan, math.inf, 1.0], n),
)


def unknown(answer):
    """Whether a NaN is anywhere in an answer."""
    if dataclasses.is_dataclass(answer):
        return any(unknown(getattr(answer, one.name)) for one in dataclasses.fields(answer))
    if isinstance(answer, tuple | list):
        return any(unknown(one) for one in answer)
    return not isinstance(answer, str | None) and bool(np.isnan(answer).any())


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("question", QUESTIONS)
def test_an_answer_or_a_refusal(question):
    rng = np.random.default_rng(1)
    answers = 0
    for _ in range(60):
        a, b = (VALUES[rng.integers(len(VALUES))](rng, rng.integers(1, 14)) for _ in range(2))
        try:
            found = QUESTIONS[question](a, b)
        except OptionError as refused:
            assert refused.what and refused.option
            continue
        answers += 1
        assert not unknown(found), (found, a, b)
    assert answers >= 5
