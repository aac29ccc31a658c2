# SPDX-License-Identifier: Apache-2.0
"""Programs written for PyTorch run here with other imports, to the same numbers."""

import copy

import numpy as np
import pytest
import student_programs
import student_programs_more

import weft

torch = pytest.importorskip("torch")
import weft.torch as wt  # noqa: E402


@pytest.mark.parametrize(
    "program", [*student_programs.ALL, *student_programs_more.ALL], ids=lambda f: f.__name__
)
def test_programs(program):
    models = []

    def begun(model):
        """Random weights, which are kept for the other library."""
        draws = np.random.default_rng(5)
        with torch.no_grad():
            for p in model.parameters():
                p.copy_(torch.tensor(draws.standard_normal(p.shape) * 0.2))
        models.append(copy.deepcopy(model))
        return model

    def again(model):
        wt.load_state_dict(model, models.pop(0))
        return model

    want = program(torch, torch.nn, torch.nn.functional, torch.optim, torch.utils.data, torch.distributions, begun)  # fmt: skip
    got = program(weft, weft.nn, weft.nn.functional, weft.optim, weft.data, weft.distributions, again)  # fmt: skip
    assert len(got) == len(want) > 2
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-6)
