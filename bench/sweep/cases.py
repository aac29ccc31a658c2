# SPDX-License-Identifier: Apache-2.0
"""All cases of the sweep. The extents are those of case.py when this is imported: call case.vary before."""

import arithmetic
import composed
import forms
import layers
import linear
import moving
import rarer


def all_cases():
    return [
        *arithmetic.cases(),
        *moving.cases(),
        *linear.cases(),
        *layers.cases(),
        *rarer.cases(),
        *composed.cases(),
        *forms.cases(),
    ]
