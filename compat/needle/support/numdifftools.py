# SPDX-License-Identifier: Apache-2.0
"""The one name that course tests use: a gradient by central differences."""

import numpy as np


class Gradient:
    def __init__(self, f, step=1e-6):
        self.f, self.step = f, step

    def __call__(self, x):
        x = np.asarray(x, dtype=float)
        out = np.zeros_like(x)
        for i in np.ndindex(x.shape):
            d = np.zeros_like(x)
            d[i] = self.step
            out[i] = (self.f(x + d) - self.f(x - d)) / (2 * self.step)
        return out
