import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadstone.stats.histogram import (
    BUCKETS,
    LARGEST,
    PERCENTILES,
    Histogram,
    bucket_of,
    lower_edges,
    supported,
)

values = st.lists(st.integers(0, LARGEST), max_size=200)


def by_hand(v: int) -> int:
    if v < 128:
        return v
    shift = v.bit_length() - 1 - 6
    return (shift << 6) + (v >> shift)


@given(st.integers(0, LARGEST))
def test_the_layout_is_the_frozen_one(v):
    bucket = int(bucket_of(v))
    assert bucket == by_hand(v) < BUCKETS
    edges = lower_edges()
    assert edges[bucket] <= v < edges[bucket + 1]
    assert edges[bucket + 1] - edges[bucket] <= max(edges[bucket] / 64, 1)


def test_layout_at_every_power_of_two():
    for power in range(43):
        for v in {(1 << power) - 1, 1 << power, (1 << power) + 1}:
            assert int(bucket_of(v)) == by_hand(min(v, LARGEST))
    assert int(bucket_of(LARGEST * 5)) == BUCKETS - 1, "what is larger is counted as the largest"


@given(values, values, values)
def test_merging_is_associative_commutative_and_exact(a, b, c):
    x, y, z = Histogram.of(a), Histogram.of(b), Histogram.of(c)
    assert (x + y) + z == x + (y + z) == Histogram.merged([z, x, y]) == Histogram.of(a + b + c)


@given(values)
def test_sparse_form_round_trips(a):
    h = Histogram.of(a)
    assert Histogram.from_sparse(*h.sparse()) == h
    buckets, counts = h.sparse()
    assert Histogram.from_sparse(np.r_[buckets, buckets], np.r_[counts, counts]) == h + h


@given(st.lists(st.integers(0, LARGEST), min_size=1, max_size=300), st.floats(0, 100))
def test_percentiles_are_within_a_64th_of_numpy(a, q):
    exact = np.percentile(a, q, method="inverted_cdf")
    got = Histogram.of(a).percentile(q)
    assert abs(got - exact) <= max(exact / 64, 0.5)


@given(st.lists(st.integers(0, LARGEST), min_size=1, max_size=300))
def test_mean_and_extremes(a):
    h = Histogram.of(a)
    assert abs(h.mean() - np.mean(a)) <= np.mean(a) / 128 + 0.5
    assert h.minimum() <= min(a) and h.maximum() >= max(a)
    assert len(h) == len(a)


def test_an_empty_one_has_no_percentiles_and_damage_is_refused():
    assert np.isnan(Histogram().percentile(50)) and np.isnan(Histogram().mean())
    assert Histogram().summary() == {"count": 0}
    with pytest.raises(ValueError, match="outside"):
        Histogram.from_sparse([BUCKETS], [1])
    with pytest.raises(ValueError, match=r"outside 0\.\.100"):
        Histogram().percentile(101)


@pytest.mark.parametrize(
    ("q", "least"),
    [(50, 20), (90, 100), (95, 200), (99, 1000), (99.9, 10_000), (99.99, 100_000), (99.999, 10**6)],
)
def test_a_percentile_is_told_from_ten_values_beyond_it(q, least):
    assert supported(least, q) and not supported(least - 1, q)
    assert Histogram.of([5]).told(q) is None


def test_a_summary_has_every_percentile_and_tells_those_with_enough_values():
    told = Histogram.of(np.arange(1000)).summary()
    assert set(told) == {"count", "mean", "min", *PERCENTILES, "max"}
    assert [name for name in PERCENTILES if told[name] is not None] == ["p50", "p90", "p95", "p99"]
    assert told["p99"] == Histogram.of(np.arange(1000)).percentile(99) and told["min"] == 0
