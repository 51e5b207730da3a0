#!/usr/bin/env python3
"""Of the safetensors in FILES or folders that are not as committed: puts back those whose every number is within 1e-5 of its
tensor's largest of what was recorded, as another processor or number of threads sums in another order.

    python tests/record/last_places.py FILE...
"""
import os
import subprocess
import sys

import torch
from safetensors.torch import load, load_file

TOLERANCE = 1e-5


def git(*args):
    return subprocess.run(["git", *args], check=True, capture_output=True).stdout


def difference(a, b):
    """The largest of two files' tensors, relative to a tensor's largest number; None: they are not alike."""
    worst = 0.0
    if a.keys() != b.keys():
        return None
    for k, x in a.items():
        y = b[k]
        if x.shape != y.shape or x.dtype != y.dtype:
            return None
        if torch.equal(x, y):
            continue
        d = float((x.double() - y.double()).abs().max() / x.double().abs().max()) if x.is_floating_point() else 1
        if not d <= TOLERANCE:
            return None
        worst = max(worst, d)
    return worst


for name in git("diff", "--name-only", "--", *sys.argv[1:]).decode().splitlines():
    if not name.endswith(".safetensors") or not os.path.exists(name):
        continue
    was = git("show", f"HEAD:{name}")
    d = difference(load(was), load_file(name))
    if d is not None:
        with open(name, "wb") as f:
            f.write(was)
        print(f"kept: {name}: within {d:.1e}")
