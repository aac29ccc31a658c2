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


class Fire(nn.Module):
    """Odd channels side by side (Iandola et al. 2016)."""

    def __init__(self, inputs, squeezed, left, right):
        super().__init__()
        self.squeeze = nn.Conv2d(inputs, squeezed, 1)
        self.left, self.right = (
            nn.Conv2d(squeezed, left, 1),
            nn.Conv2d(squeezed, right, 3, padding=1),
        )

    def forward(self, x):
        x = torch.relu(self.squeeze(x))
        return torch.cat([torch.relu(self.left(x)), torch.relu(self.right(x))], 1)


class Squeeze(nn.Module):
    """Concatenated channels, functions in place of layers, a view by sizes, averages of windows."""

    def __init__(self, averages):
        super().__init__()
        self.averages = averages
        self.first = nn.Conv2d(3, 7, 3, stride=2)
        self.fires = nn.Sequential(Fire(7, 3, 5, 9), Fire(14, 5, 11, 6))
        self.last = nn.Conv2d(31, 13, (3, 1))
        self.scores = nn.Linear(13 * (2 * 4 if averages else 1 * 2), 4)

    def forward(self, x):
        f = nn.functional
        x = f.max_pool2d(f.relu(self.first(x)), 3, 2)
        x = torch.cat([self.fires(x), f.max_pool2d(x, 3, 1, 1), x], dim=1)
        x = f.relu(self.last(x))
        x = f.avg_pool2d(x, 3, 1, 1) if self.averages else f.avg_pool2d(x, 2)
        return self.scores(x.view(x.size(0), -1))


@pytest.mark.parametrize("averages", [True, False])
def test_concatenated_channels_and_averages(averages):
    torch.manual_seed(2)
    net = check(Squeeze(averages), (3, 19, 19), 0.15)
    assert {p.layer for p in net.places if p.reason} == {"quantize", "dequantize"}, net.places


def test_pooled_images_are_images():
    """A convolution behind an average, and results of other shapes than rows."""
    torch.manual_seed(3)
    pooled = [nn.Conv2d(3, 5, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Conv2d(5, 6, 1)]
    check(nn.Sequential(*pooled), (3, 6, 5), 0.1)
    check(nn.Sequential(*pooled, nn.Flatten(), nn.Linear(6, 3)), (3, 6, 5), 0.1)
    check(nn.Sequential(*pooled[:3]), (3, 6, 5), 0.1)
    check(nn.Sequential(pooled[0], nn.Flatten()), (3, 6, 5), 0.1)


def test_layers_that_work_in_place_change_what_later_layers_read():
    class Before(nn.Module):
        """A shortcut that the ReLU behind it has changed."""

        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Conv2d(3, 5, 1), nn.Conv2d(5, 5, 3, padding=1)

        def forward(self, x):
            x = self.first(x)
            y = self.second(nn.functional.relu(x, inplace=True))
            return x + y

    class Added(Before):
        def forward(self, x):
            x = self.first(x)
            y = x.add_(self.second(x))
            return self.second(x) + y

    class Unseen(Before):
        def forward(self, x):
            x = y = self.first(x)
            y += self.second(x)
            return self.second(x) + y

    with pytest.raises(weft.ArgumentError) as caught:
        check(Unseen(), (3, 6, 6), 0.1)
    assert caught.value.code == "vta.quantize.trace" and "y = y + x" in str(caught.value)
    for model in (Before(), Added()):
        torch.manual_seed(4)
        for p in model.parameters():
            nn.init.normal_(p, std=0.5)
        check(model, (3, 6, 6), 0.1)


def lambda_model(function):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(3, 4, 3, padding=1)

        def forward(self, x):
            return function(self.conv(x), x)

    return Model()


@pytest.mark.parametrize(
    "function, word",
    [
        (lambda y, x: torch.add(y, y, alpha=2), "alpha = 2"),
        (lambda y, x: y.mean(1), "its axes are 1"),  # of 4 channels, 2 x 2
        (lambda y, x: y.mean((1, 2)), "its axes are"),
        (lambda y, x: y.flatten(2), "one axis beside"),
        (lambda y, x: torch.cat([y, y], 2), "axis 2"),
        (lambda y, x: y + y.mean((2, 3), keepdim=True), "shapes"),
        (lambda y, x: y + 1.5, "something else than activations"),
        (lambda y, x: nn.functional.dropout(y), "in evaluation"),
        (lambda y, x: nn.functional.max_pool2d(y, 2, return_indices=True)[0], "2 arrays"),
        (lambda y, x: nn.functional.avg_pool2d(y, 2, 1, 1, count_include_pad=False), "divides"),
        (lambda y, x: y.view(-1, 2, 2), "makes"),
        (lambda y, x: (y, x), "one array"),
        (lambda y, x: torch.ones(2, 3), "one array"),
    ],
)
def test_functions_with_another_meaning_are_refused(function, word):
    x = np.random.default_rng(1).standard_normal((2, 3, 2, 2)).astype("float32")
    with pytest.raises(weft.ArgumentError) as caught:
        weft.vta.quantize(lambda_model(function), x, weft.vta.env())
    assert caught.value.code == "vta.quantize.layer" and word in str(caught.value), caught.value


@pytest.mark.parametrize(
    "samples, word",
    [
        (np.full((2, 3, 4, 4), np.nan, "float32"), "is nan"),
        (np.ones((2, 5, 4, 4), "float32"), "does not take the samples"),
        (np.ones((3, 4, 4), "float32"), "(3, 4, 4)"),
        (np.ones((0, 3, 4, 4), "float32"), "(0, 3, 4, 4)"),
        ("images", "str"),
        (None, "()"),
    ],
)
def test_samples_that_say_nothing(samples, word):
    with pytest.raises(weft.Error) as caught:
        weft.vta.quantize(nn.Conv2d(3, 4, 3), samples, weft.vta.env())
    assert caught.value.code == "vta.quantize.samples" and word in str(caught.value), caught.value


@pytest.mark.parametrize(
    "layers, word",
    [
        ([nn.Conv2d(3, 4, 3), nn.Sigmoid()], "Sigmoid"),
        ([nn.Conv2d(3, 4, 3, stride=(1, 2))], "stride"),
        ([nn.Conv2d(3, 4, 3, padding=1, padding_mode="reflect")], "reflect"),
        ([nn.BatchNorm2d(3), nn.ReLU()], "normalises"),
        ([nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4, track_running_stats=False)], "running statistics"),
        ([nn.MaxPool2d(2, return_indices=True)], "2 arrays"),
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


def test_biases_of_sums_that_are_not_shifted():
    """A half is added to what is rounded by a shift; a channel without one gets its bias as it is, negative ones too."""
    from types import SimpleNamespace

    from weft.vta_quantize import _Quantizer

    w = np.array([[127.0, 5.0], [-127.0, 3.0], [31.75, 1.0]])
    bias = np.array([-3.0, 7.0, -2.0])
    found, offset, shifts, scale = _Quantizer.weights(None, w, bias, SimpleNamespace(scale=1.0), 1.0)  # fmt: skip
    assert scale == 1.0 and shifts.tolist() == [0, 0, 2]
    assert found.tolist() == [[127, 5], [-127, 3], [127, 4]]
    assert offset.tolist() == [-3, 7, -2 * 4 + 2]
