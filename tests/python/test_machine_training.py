# SPDX-License-Identifier: Apache-2.0
"""Networks that learn on simulated machines have the host's losses, step by step."""

import importlib.util
import pathlib

import numpy as np
import pytest

import weft
from weft import _core

PATH = pathlib.Path(__file__).parents[2] / "examples/machines/train.py"
SIZES = {"mlp": {"inputs": 21, "hidden": 13}, "convolution": {"size": 6}}


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location("machine_train", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("optimizer", ["SGD", "Adam"])
@pytest.mark.parametrize("kind", SIZES)
@pytest.mark.parametrize("device", ["qpu", "wse:8x8"])
def test_losses_are_those_of_the_host(example, device, kind, optimizer):
    if device.split(":")[0] not in _core.targets():
        pytest.skip(f"built without the {device} target")
    options = {"kind": kind, "batch": 5, "steps": 3, "optimizer": optimizer, **SIZES[kind]}
    options["rate"] = 0.1 if optimizer == "SGD" else 0.01
    want, got = ([loss for loss, _ in example.train(d, **options)] for d in ("cpu", device))
    assert want[-1] < want[0]
    np.testing.assert_allclose(got, want, rtol=2e-4)
    assert weft.device(device).stats()["cycles"] > 0  # the machine has computed


@pytest.mark.parametrize("device", ["qpu", "wse:8x8"])
def test_a_network_of_usual_size_fits(example, device):
    """784-128-10, batch 32: the weights lie divided over the 64 PEs of 48 KiB."""
    if device.split(":")[0] not in _core.targets():
        pytest.skip(f"built without the {device} target")
    want, got = ([loss for loss, _ in example.train(d, steps=2)] for d in ("cpu", device))
    np.testing.assert_allclose(got, want, rtol=2e-4)


def test_labels_that_need_more_than_32_bits_are_refused():
    if "qpu" not in _core.targets():
        pytest.skip("built without the qpu target")
    scores = weft.ones((2, 3), device="qpu")
    labels = weft.asarray(np.array([0, 2**32 + 1]), device="qpu")
    with pytest.raises(weft.IndexError) as caught:
        weft.nn.functional.cross_entropy(weft.Tensor(scores), labels)
    assert caught.value.code == "array.index.range" and "32 bits" in str(caught.value)
