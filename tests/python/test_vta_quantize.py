# SPDX-License-Identifier: Apache-2.0
"""Networks of PyTorch quantised for VTA: every layer's integers beside NumPy's, answers beside the float32 model's."""

import importlib.util
import pathlib
import sys

import numpy as np
import pytest

import weft

torch = pytest.importorskip("torch", reason="quantize reads PyTorch's models")
pytest.importorskip("torch.fx", reason="quantize traces models with torch.fx")
nn = torch.nn
pytestmark = pytest.mark.targets("vta")
PATH = pathlib.Path(__file__).parents[2] / "examples/vta/quantized.py"


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location("vta_quantized", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("kind, config", [("resnet18", "sim"), ("mobilenet", "sim"), ("resnet18", "4x8x8")])  # fmt: skip
def test_answers_are_those_of_float32(example, kind, config):
    found = example.compare(kind, 32, 8, 40, weft.vta.env(config))
    net, images = found["net"], found["images"][:3]
    assert {p.layer for p in net.places if p.reason} == {"quantize", "dequantize"}
    assert found["float32"] >= 0.8 and found["int8"] >= found["float32"] - 0.05, found
    assert found["agree"] >= 0.9 and found["error"] < 0.12, found
    for image in images:
        scores, want = net(image[None]), net.reference(image[None])
        np.testing.assert_array_equal(scores, want)
        for layer in net.net.layers:
            mine, theirs = net.net.values[layer.name], net.net.expected[layer.name]
            np.testing.assert_array_equal(mine, theirs, err_msg=layer.name)
    assert net.cycles > 0


class Mixed(nn.Module):
    """Odd channels, groups, a dilation, a sum of two sources, functions in place of layers, no norm."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 6, 3, padding=1)
        self.left = nn.Conv2d(6, 9, 3, padding=2, dilation=2, groups=3)
        self.right = nn.Conv2d(6, 9, 1, bias=False)
        self.inner = nn.Linear(9 * 4 * 4, 11)
        self.outer = nn.Linear(11, 5)

    def forward(self, x):
        x = torch.relu(self.first(x))
        x = torch.nn.functional.relu6(torch.relu(self.left(x)) + torch.relu(self.right(x)))
        return self.outer(torch.relu(self.inner(torch.flatten(x, 1))))


def check(model, shape, near):
    torch.manual_seed(1)
    model.eval()
    x = np.random.default_rng(5).standard_normal((8, *shape)).astype(np.float32)
    net = weft.vta.quantize(model, x, weft.vta.env())
    with torch.no_grad():
        want = model(torch.as_tensor(x)).numpy()
    got = net(x)
    np.testing.assert_array_equal(got, net.reference(x))
    assert got.shape == want.shape and got.dtype == np.float32
    assert np.abs(got - want).max() < near * np.abs(want).max()
    return net


def test_odd_shapes_groups_and_sums():
    torch.manual_seed(0)
    net = check(Mixed(), (3, 4, 4), 0.1)
    assert {p.target for p in net.places} == {"vta", "cpu"}


def test_activations_as_the_result_and_zero_weights():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(2, 5, 2), nn.BatchNorm2d(5), nn.ReLU6(), nn.Identity())
    with torch.no_grad():
        model[0].weight[3] = 0
        model[1].running_mean.fill_(0.3)
    check(model, (2, 5, 7), 0.05)


@pytest.mark.parametrize(
    "layers, word",
    [
        ([nn.Conv2d(3, 4, 3), nn.Sigmoid()], "Sigmoid"),
        ([nn.Conv2d(3, 4, 3, stride=(1, 2))], "stride"),
        ([nn.Conv2d(3, 4, 3, padding=1, padding_mode="reflect")], "reflect"),
        ([nn.BatchNorm2d(3), nn.ReLU()], "normalises"),
        ([nn.MaxPool2d(2, ceil_mode=True)], "ceil_mode"),
        ([nn.AdaptiveAvgPool2d(2)], "average"),
    ],
)
def test_refused_layers_are_named(layers, word):
    with pytest.raises(weft.ArgumentError) as caught:
        weft.vta.quantize(nn.Sequential(*layers), np.ones((2, 3, 8, 8), "float32"), weft.vta.env())
    assert caught.value.code == "vta.quantize.layer"
    assert word in str(caught.value) and "legal: Conv2d" in str(caught.value)


def test_without_pytorch(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(weft.ArgumentError) as caught:
        weft.vta.quantize(object(), np.ones((1, 3, 4, 4)), weft.vta.env())
    assert caught.value.code == "vta.quantize.torch" and "not installed" in str(caught.value)


def test_models_that_branch_and_other_shapes():
    class Branch(nn.Module):
        def forward(self, x):
            return x if x.sum() > 0 else -x

    with pytest.raises(weft.ArgumentError) as caught:
        weft.vta.quantize(Branch(), np.ones((1, 3, 4, 4)), weft.vta.env())
    assert caught.value.code == "vta.quantize.trace" and "cannot be traced" in str(caught.value)
    net = weft.vta.quantize(nn.Conv2d(3, 4, 3), np.ones((1, 3, 4, 4)), weft.vta.env())
    with pytest.raises(weft.ShapeError) as shape:
        net(np.ones((1, 3, 5, 5)))
    assert shape.value.code == "vta.quantize.shape" and "(n, 3, 4, 4)" in str(shape.value)
