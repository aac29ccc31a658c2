# SPDX-License-Identifier: Apache-2.0
"""Functions in which planted faults once stayed unseen."""

import numpy as np
import pytest
import weft


def tensor(values, dtype="float64"):
    return weft.Tensor(weft.asarray(np.array(values, dtype)), requires_grad=True)


@pytest.mark.parametrize(
    ("points", "values", "of_values"),
    [
        ([1.0, 3.0, 3.0], [2.0, 5.0, 7.0], [2.0, 0.0, 2.0]),
        ([3.0, 3.0, 4.0], [2.0, 5.0, 7.0], [2.0, 1.0, 1.0]),
        ([3.0], [2.0], [4.0]),
    ],
)
def test_interp_with_points_that_meet_has_finite_gradients(points, values, of_values):
    fp, x = tensor(values), tensor([0.5, 1.0, 3.0, 9.0])
    y = weft.interp(x, np.array(points), fp)
    assert y.tolist() == np.interp(x.tolist(), points, values).tolist()
    y.sum().backward()
    assert x.grad.tolist() == [0.0] * 4
    assert fp.grad.tolist() == of_values
