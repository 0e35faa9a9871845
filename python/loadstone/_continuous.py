"""Continuous distributions of scipy.stats by name, as files of strangers name them.

Only those are had whose values cost little. Others integrate or seek a root for each value. That takes
minutes for some parameters, and the code in C that does so hears no Ctrl-C.
"""

from __future__ import annotations

from typing import Any

from loadstone._extras import need

# 4,097 values of ``cdf`` and ``ppf`` took at most 1.5 s, with parameters from 0.001 to 1e12.
# fmt: off
_QUICK = frozenset(
    {
        "alpha", "anglit", "arcsine", "beta", "betaprime", "bradford", "burr", "burr12", "cauchy",
        "chi", "chi2", "cosine", "crystalball", "dgamma", "dweibull", "erlang", "expon", "exponpow",
        "exponweib", "f", "fatiguelife", "fisk", "gamma", "genexpon", "genextreme", "gengamma",
        "genhalflogistic", "genlogistic", "gennorm", "genpareto", "gibrat", "gompertz", "gumbel_l",
        "gumbel_r", "halfcauchy", "halfgennorm", "halflogistic", "halfnorm", "hypsecant",
        "invgamma", "invweibull", "johnsonsb", "johnsonsu", "kappa3", "kappa4", "laplace",
        "laplace_asymmetric", "levy", "levy_l", "loggamma", "logistic", "loglaplace", "lognorm",
        "loguniform", "lomax", "maxwell", "mielke", "moyal", "nakagami", "norm", "pareto",
        "pearson3", "powerlaw", "powerlognorm", "powernorm", "rayleigh", "rdist", "reciprocal",
        "semicircular", "skewcauchy", "t", "trapezoid", "triang", "truncexpon", "truncnorm",
        "truncpareto", "truncweibull_min", "tukeylambda", "uniform", "wald", "weibull_max",
        "weibull_min", "wrapcauchy",
    }
)
# fmt: on


def continuous(name: str) -> Any:
    """The distribution of that name; ``None`` where there is none, or its values take too long to compute."""
    if name not in _QUICK:
        return None
    need("scipy")
    # It takes a second to load.
    from scipy import stats

    found = getattr(stats, name, None)
    return found if isinstance(found, stats.rv_continuous) else None
