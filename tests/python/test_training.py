# SPDX-License-Identifier: Apache-2.0
"""Whole models train as in PyTorch from equal weights: bench/training.py at the size of tests."""

import pathlib
import sys

import pytest

import weft

pytest.importorskip("torch")
sys.path.append(str(pathlib.Path(__file__).parents[2] / "bench"))
import training  # noqa: E402


@pytest.mark.parametrize("name", training.MODELS)
def test_losses_on_the_host(name):
    ours, theirs, _ = training.Pair(name, "small", "cpu").losses(10)
    assert theirs[-1] < theirs[0]
    assert ours == pytest.approx(theirs, rel=1e-3)


@pytest.mark.targets("opencl")
@pytest.mark.parametrize("name", ["lenet", "vit", "dlrm", "lstm"])
def test_losses_on_a_grid(name):
    if not any(d.name.startswith("opencl") for d in weft.devices()):
        pytest.skip("no OpenCL device")
    ours, theirs, _ = training.Pair(name, "small", "opencl:0").losses(4)
    assert ours == pytest.approx(theirs, rel=1e-3)
