"""Statistics: pure functions over figures of runs, one module a subject.

======================  =========================================================================
``metric``              what a figure is called, its unit, which way is better
``samples``             which values are accepted, and their summary
``intervals``           of a mean, of any statistic, of a difference, of a ratio
``means``, ``ranks``    whether two groups differ: t tests, tests by ranks
``variances``           whether two groups vary alike: F test, Levene's
``equivalence``         whether two groups are the same within a margin
``many``                many metrics at once: Holm, Benjamini and Hochberg
``repetition``          when to stop making runs
``planning``            how many runs to make, and at which level
``levels``, ``history`` from which level, or which day, figures differ
``series``, ``steady``  figures within a run: autocorrelation, steady state
``outliers``            runs that lie apart, flagged
``curves``              distribution, QQ plot, smooth curve with its band
``histogram``           of latency; ``quantiles``: its percentiles, and two of them compared
``distance``            how far curves of two groups of runs are apart
======================  =========================================================================

The run is the unit of replication. Values are one a run; ``series``, ``steady`` and ``quantiles`` look into
a run. Of two groups the second is told relative to the first: second minus first, second over first.
What cannot be answered raises :class:`loadstone.errors.OptionError`, a ``ValueError``, with what to do.
"""

from loadstone.stats.histogram import Histogram

__all__ = ["Histogram"]
