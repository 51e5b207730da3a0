#!/usr/bin/env python3
"""Records what scipy says of means and of paired differences: tests/data/ablation/ranking.json, on standard output.

    pip install -r tests/record/requirements-scipy.txt;  python tests/record/ablation.py >tests/data/ablation/ranking.json

"quantiles": [p, degrees of freedom, scipy.stats.t.ppf].  "cases": scores (variants, seeds) with null where a run is missing, the
probability alpha of any false decision, how many pairs there are, for each variant mean and half of its interval at alpha, and for
each pair the mean of a - b, half of its interval at alpha divided by the number of pairs (Bonferroni), and whether the interval,
scipy.stats.ttest_rel's, leaves out zero.
"""
import itertools
import json

import numpy as np
from scipy import stats

PROBABILITIES = (.5, .75, .9, .975, .995, .9975, .9999, .9999999)
FREEDOM = (1, 2, 3, 4, 7, 9, 30, 100, 999)


def number(x):
    return None if np.isnan(x) else float(x)


def interval(values, alpha):
    n = len(values)
    if n < 2:
        return [float(np.mean(values)) if n else None, None]
    half = stats.t.ppf(1 - alpha / 2, n - 1) * stats.sem(values)
    return [float(np.mean(values)), float(half)]


def case(rng, variants, seeds, spread, noise, alpha, missing):
    x = rng.normal(3, spread, (variants, 1)) + rng.normal(0, .05, (1, seeds)) + rng.normal(0, noise, (variants, seeds))
    for v, n in missing:
        x[v, n:] = np.nan
    pairs, m = [], variants * (variants - 1) // 2
    for a, b in itertools.combinations(range(variants), 2):
        both = ~np.isnan(x[a]) & ~np.isnan(x[b])
        p, q = x[a][both], x[b][both]
        low, high = stats.ttest_rel(p, q).confidence_interval(1 - alpha / m)
        pairs.append([a, b, float(np.mean(p - q)), float((high - low) / 2), bool(low > 0 or high < 0)])
    return {"scores": [[number(y) for y in row] for row in x], "alpha": alpha, "comparisons": m,
            "variants": [interval(row[~np.isnan(row)], alpha) for row in x], "pairs": pairs}


def main():
    rng = np.random.default_rng(11)
    quantiles = [[p, f, float(stats.t.ppf(p, f))] for p in PROBABILITIES for f in FREEDOM]
    cases = [case(rng, 2, 3, .1, .01, .05, ()), case(rng, 5, 3, .1, .02, .05, ()), case(rng, 6, 8, .05, .05, .01, ()),
             case(rng, 4, 5, .02, .01, .1, ((1, 2), (3, 4)))]
    print(json.dumps({"quantiles": quantiles, "cases": cases}, indent=None, separators=(",", ":")).replace('{"scores', '\n{"scores'))


if __name__ == "__main__":
    main()
