#!/usr/bin/env python3
"""Records fits by scipy: points to tests/data/fit/scale.jsonl and mixtures.jsonl, the answers to answers.json beside them.

    pip install -r tests/record/requirements-fits.txt;  python tests/record/fits.py

Sizes: losses by the constants of arXiv:2404.10102 (a fit of Chinchilla's own points) with noise, of which a few points have much.
The sum of Huber's loss of the errors of log L is least where scipy's least_squares ends from each of many starts, and root makes the
gradient 0.  Mixtures: three sources, three targets whose losses follow the three laws of pipelines/fit_mixture.h with noise; each law is
fitted to its target, without each point in turn too; the best weights for the mean of the targets are SLSQP's.
"""
import itertools
import json
import os

import numpy as np
from scipy import optimize, stats
from scipy.special import logsumexp

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data", "fit")
DELTA = 1e-3
E, A, ALPHA, B, BETA = 1.8172, 482.01, 0.3478, 2085.43, 0.3658
C, T = 1.4, (0.9, 0.1, -0.8)
PC, PA, PQ = 1.1, 0.6, (1.2, 0.05, 0.3)
LINEAR = (1.2, 0.3, 0.95)
MOST = (0.3, 1.0, 0.4)


def write(name, lines):
    with open(os.path.join(FOLDER, name), "w") as f:
        for line in lines:
            f.write(json.dumps(line) + "\n")


def scale_points(rng):
    points = []
    for n, d in itertools.product(np.geomspace(4e7, 6e9, 7), np.geomspace(5e8, 3e11, 8)):
        n, d = float(f"{n:.4g}"), float(f"{d:.4g}")
        noise = rng.normal() * (0.03 if rng.random() < 0.08 else 0.002)
        points.append({"params": n, "tokens": d, "loss": round(float((E + A / n**ALPHA + B / d**BETA) * np.exp(noise)), 6)})
    return points


def fit_scale(points):
    n, d, z = (np.array([p[k] for p in points]) for k in ("params", "tokens", "loss"))
    x, y, z = np.log(n), np.log(d), np.log(z)
    mx, my = x.mean(), y.mean()

    def parts(p):
        return np.stack([np.full_like(x, p[0]), p[1] - p[2] * (x - mx), p[3] - p[4] * (y - my)])

    def left(p):
        return logsumexp(parts(p), axis=0) - z

    def jac(p):
        s = np.exp(parts(p) - logsumexp(parts(p), axis=0))
        return np.stack([s[0], s[1], -s[1] * (x - mx), s[2], -s[2] * (y - my)], axis=1)

    def gradient(p):
        return jac(p).T @ np.clip(left(p), -DELTA, DELTA)

    best = None
    for alpha, beta, e, a, b in itertools.product((0, .5, 1), (0, .5, 1), (-.5, .5), (0, 10), (0, 10)):
        start = (e, a - alpha * mx, alpha, b - beta * my, beta)
        r = optimize.least_squares(left, start, jac, loss="huber", f_scale=DELTA, xtol=1e-15, ftol=1e-15, gtol=1e-15, max_nfev=2000)
        if best is None or r.cost < best.cost:
            best = r
    p = optimize.root(gradient, best.x, method="hybr", tol=1e-15).x
    assert np.abs(gradient(p)).max() < 1e-13 and np.allclose(p, best.x, rtol=1e-4)
    r = np.abs(left(p))
    objective = float(np.where(r <= DELTA, r * r / 2, DELTA * (r - DELTA / 2)).sum())
    law = {"e": p[0], "a": p[1] + p[2] * mx, "alpha": p[2], "b": p[3] + p[4] * my, "beta": p[4]}
    budget = 1e21

    def at(log_n):
        n = np.exp(log_n)
        return np.exp(law["e"]) + np.exp(law["a"]) * n**-law["alpha"] + np.exp(law["b"]) * (budget / 6 / n)**-law["beta"]

    n = float(np.exp(optimize.minimize_scalar(at, bounds=(np.log(1e7), np.log(1e12)), method="bounded", options={"xatol": 1e-12}).x))
    return dict(law, objective=objective, flops=budget, params=n, loss=float(at(np.log(n))))


def mixture_points(rng):
    points = []
    for w in rng.dirichlet((1, 1, 1), 24):
        w = [round(float(v), 6) for v in w]
        w[2] = round(1 - w[0] - w[1], 6)
        wn = np.array(w)
        losses = (np.exp(wn @ LINEAR), C + np.exp(wn @ T), PC + (wn @ PQ) ** -PA)
        losses = [round(float(v * np.exp(rng.normal() * 0.002)), 7) for v in losses]
        points.append({"weights": dict(zip(("web", "books", "code"), w)), "losses": dict(zip(("first", "second", "third"), losses))})
    return points


def law_linear(p, w):
    return w @ p


def law_exponential(p, w):
    return np.logaddexp(p[0], w @ p[1:])


def law_power(p, w):
    return np.logaddexp(p[0], -np.exp(p[1]) * np.log(w @ np.exp(p[2:])))


LAWS = ((law_linear, LINEAR), (law_exponential, (np.log(C), *T)), (law_power, (np.log(PC), np.log(PA), *np.log(PQ))))


def fit_law(law, truth, w, z):
    if law is law_linear:
        return np.linalg.lstsq(w, z, rcond=None)[0]
    best = None
    for shift in (0, .3, -.3):
        r = optimize.least_squares(lambda p: law(p, w) - z, np.array(truth) + shift, method="lm", xtol=1e-15, ftol=1e-15, gtol=1e-15,
                                   max_nfev=20000)
        if best is None or r.cost < best.cost:
            best = r
    return best.x


def fit_mixtures(points):
    w = np.array([list(p["weights"].values()) for p in points])
    z = np.log([list(p["losses"].values()) for p in points])
    fits, out = [], {}
    for i, (law, truth) in enumerate(LAWS):
        p = fit_law(law, truth, w, z[:, i])
        left = []
        for k in range(len(w)):
            rest = np.arange(len(w)) != k
            left.append(law(fit_law(law, p, w[rest], z[rest, i]), w[k]))
        left = np.array(left)
        fits.append(p)
        out[law.__name__[4:]] = {"p": list(p), "error": float(np.sqrt(np.mean((left - z[:, i]) ** 2))),
                                 "correlation": float(stats.spearmanr(left, z[:, i])[0])}

    def mean(v):
        return sum(np.exp(law(p, v)) for (law, _), p in zip(LAWS, fits)) / 3

    for name, most in (("best", (1, 1, 1)), ("bounded", MOST)):
        r = optimize.minimize(mean, np.array((.3, .4, .3)), bounds=[(0, m) for m in most], method="SLSQP",
                              constraints={"type": "eq", "fun": lambda v: v.sum() - 1}, options={"ftol": 1e-16, "maxiter": 1000})
        out[name] = {"weights": list(r.x), "loss": float(r.fun)}
    return out


def main():
    rng = np.random.default_rng(20260101)
    sizes, mixtures = scale_points(rng), mixture_points(rng)
    write("scale.jsonl", sizes)
    write("mixtures.jsonl", mixtures)
    x = [round(float(v), 3) for v in rng.normal(size=21)]
    y = [round(a + float(v), 1) for a, v in zip(x, rng.normal(size=21))]
    answers = {"scale": fit_scale(sizes), "mixtures": fit_mixtures(mixtures),
               "numbers": {"x": x, "y": y, "quantile": float(np.quantile(y, .07)), "correlation": float(stats.spearmanr(x, y)[0])}}
    with open(os.path.join(FOLDER, "answers.json"), "w") as f:
        json.dump(answers, f, indent=1)
        f.write("\n")


main()
