"""Parameters that modules compute (nn.utils.parametrize, nn.utils.parametrizations) and optimizers of matrices."""

import copy
import math

import numpy as np
import pytest
import weft
from weft import nn, optim
from weft.nn.utils import parametrizations, parametrize


class Symmetric(nn.Module):
    def forward(self, x):
        upper = weft.triu(x)
        return upper + weft.triu(x, k=1).mT

    def right_inverse(self, x):
        return weft.triu(x)


class Doubled(nn.Module):
    def forward(self, x):
        return x * 2.0


class Exp(nn.Module):
    def forward(self, x):
        return weft.exp(x)

    def right_inverse(self, x):
        return weft.log(x)


def test_a_parametrized_weight_is_computed_from_its_original():
    layer = nn.Linear(5, 5)
    before = layer.weight.numpy().copy()
    assert parametrize.register_parametrization(layer, "weight", Symmetric()) is layer
    assert isinstance(layer, nn.Linear) and type(layer).__name__ == "ParametrizedLinear"
    want = np.triu(before) + np.triu(before, 1).T
    np.testing.assert_allclose(layer.weight.numpy(), want)
    x = np.random.default_rng(0).random((3, 5), dtype="float32")
    np.testing.assert_allclose(
        layer(weft.asarray(x)).numpy(), x @ want + layer.bias.numpy(), rtol=1e-5
    )
    names = set(layer.state_dict())
    assert names == {"bias", "parametrizations.weight.original"}
    (layer(weft.asarray(x)) ** 2).sum().backward()
    got = layer.parametrizations["weight"].original.grad.numpy()
    assert np.all(np.tril(got, -1) == 0) and np.abs(got[np.triu_indices(5)]).min() > 0


def test_a_second_parametrization_takes_what_the_first_gave():
    layer = nn.Linear(3, 3, bias=False)
    before = layer.weight.numpy().copy()
    parametrize.register_parametrization(layer, "weight", Symmetric())
    parametrize.register_parametrization(layer, "weight", Doubled())
    want = 2 * (np.triu(before) + np.triu(before, 1).T)
    np.testing.assert_allclose(layer.weight.numpy(), want, rtol=1e-6)
    assert len(layer.parametrizations["weight"]) == 2
    with pytest.raises(weft.ArgumentError) as caught:
        layer.weight = weft.ones((3, 3))
    assert caught.value.code == "nn.parametrize.inverse" and "Doubled" in str(caught.value)


def test_assignment_goes_through_right_inverse():
    layer = nn.Linear(4, 2)
    layer.weight.data = weft.abs(layer.weight.data) + 0.1
    before = layer.weight.numpy().copy()
    parametrize.register_parametrization(layer, "weight", Exp())
    np.testing.assert_allclose(layer.weight.numpy(), before, rtol=1e-5)
    layer.weight = weft.full((4, 2), 3.0)
    original = layer.parametrizations["weight"].original
    np.testing.assert_allclose(original.numpy(), math.log(3.0), rtol=1e-6)


def test_a_copy_and_its_original_lose_their_parametrizations_apart():
    layer = parametrize.register_parametrization(nn.Linear(3, 3), "weight", Symmetric())
    other = copy.deepcopy(layer)
    want = layer.weight.numpy()
    parametrize.remove_parametrizations(layer, "weight")
    assert type(layer) is nn.Linear and not parametrize.is_parametrized(layer)
    assert isinstance(layer.weight, nn.Parameter)
    np.testing.assert_array_equal(layer.weight.numpy(), want)
    np.testing.assert_array_equal(other.weight.numpy(), want)
    parametrize.remove_parametrizations(other, "weight", leave_parametrized=False)
    np.testing.assert_array_equal(other.weight.numpy(), np.triu(want))
    other.weight.data = weft.zeros((3, 3))
    assert not other.weight.numpy().any()


def test_cached_computes_once():
    class Counted(nn.Module):
        calls = 0

        def forward(self, x):
            Counted.calls += 1
            return x * 1.0

    layer = parametrize.register_parametrization(nn.Linear(2, 2), "weight", Counted())
    at = Counted.calls
    with parametrize.cached():
        assert layer.weight is layer.weight
        with parametrize.cached():
            assert layer.weight is layer.weight
    assert Counted.calls == at + 1
    assert layer.weight is not layer.weight


@pytest.mark.parametrize(
    "ask, code",
    [
        (lambda m: parametrize.register_parametrization(m, "scale", Doubled()), "nn.parametrize.name"),
        (lambda m: parametrize.remove_parametrizations(m, "weight"), "nn.parametrize.absent"),
        (lambda m: parametrizations.weight_norm(m, "scale"), "nn.parametrize.name"),
        (lambda m: parametrizations.orthogonal(m, "bias"), "nn.parametrize.matrix"),
        (lambda m: parametrizations.orthogonal(m, orthogonal_map="x"), "nn.parametrize.orthogonal"),
        (
            lambda m: parametrize.remove_parametrizations(
                parametrizations.weight_norm(m), "weight", leave_parametrized=False
            ),
            "nn.parametrize.several",
        ),
    ],
)  # fmt: skip
def test_refusals(ask, code):
    with pytest.raises(weft.Error) as caught:
        ask(nn.Linear(2, 3))
    assert caught.value.code == code


def test_another_shape_is_refused_and_leaves_the_module_as_it_was():
    class Row(nn.Module):
        def forward(self, x):
            return x[0]

    layer = nn.Linear(2, 3)
    with pytest.raises(weft.ShapeError) as caught:
        parametrize.register_parametrization(layer, "weight", Row())
    assert caught.value.code == "nn.parametrize.shape"
    assert type(layer) is nn.Linear and set(layer.state_dict()) == {"weight", "bias"}
    parametrize.register_parametrization(layer, "weight", Doubled())
    with pytest.raises(weft.ShapeError):
        parametrize.register_parametrization(layer, "weight", Row())
    assert len(layer.parametrizations["weight"]) == 1
    parametrize.register_parametrization(layer, "weight", Row(), unsafe=True)
    assert layer.weight.shape == (3,)


@pytest.mark.parametrize("dim", [0, 1, None])
@pytest.mark.parametrize("make", [lambda: nn.Linear(4, 6), lambda: nn.Conv2d(3, 5, 3)])
def test_weight_norm_trains_size_and_direction(make, dim):
    weft.random.seed(1)
    layer = make()
    before = layer.weight.numpy().copy()
    parametrizations.weight_norm(layer, dim=dim)
    np.testing.assert_allclose(layer.weight.numpy(), before, rtol=1e-5)
    held = layer.parametrizations["weight"]
    plain = nn.utils.weight_norm(make(), dim=dim)
    assert held.original0.shape == plain.weight_g.shape
    held.original0.data = held.original0.data * 3.0
    np.testing.assert_allclose(layer.weight.numpy(), before * 3, rtol=1e-5)


def test_spectral_norm_has_a_largest_singular_value_of_one():
    weft.random.seed(2)
    layer = parametrizations.spectral_norm(nn.Linear(7, 5), n_power_iterations=20)
    for _ in range(5):
        layer(weft.ones((1, 7)))
    top = np.linalg.svd(layer.weight.numpy(), compute_uv=False)[0]
    assert abs(top - 1) < 1e-4
    layer.eval()
    first, second = layer.weight.numpy(), layer.weight.numpy()
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("kind", [None, "matrix_exp", "cayley"])
@pytest.mark.parametrize("shape", [(4, 4), (6, 3), (3, 6)])
def test_orthogonal_stays_orthogonal_while_it_trains(shape, kind):
    weft.random.seed(3)
    layer = nn.Linear(*shape)
    before = layer.weight.numpy().astype("float64")
    parametrizations.orthogonal(layer, orthogonal_map=kind)
    tall = before if shape[0] >= shape[1] else before.T
    q, r = np.linalg.qr(tall)
    q = q * np.where(np.diagonal(r) < 0, -1, 1)
    now = layer.weight.numpy() if shape[0] >= shape[1] else layer.weight.numpy().T
    np.testing.assert_allclose(now, q, atol=1e-5)
    opt = optim.SGD(layer.parameters(), lr=0.3)
    x = weft.asarray(np.random.default_rng(4).random((8, shape[0]), dtype="float32"))
    for _ in range(3):
        opt.zero_grad()
        ((layer(x) - 1.0) ** 2).mean().backward()
        opt.step()
    w = layer.weight.numpy() if shape[0] >= shape[1] else layer.weight.numpy().T
    assert np.abs(w - now).max() > 1e-3
    np.testing.assert_allclose(w.T @ w, np.eye(w.shape[1]), atol=1e-5)


# ---- optimizers of matrices, against their formulas in float64


def adafactor(x, gradients, lr, decay, shrink, least, least_size, d):
    row = column = square = 0.0
    for n, g in enumerate(gradients, 1):
        share = n**decay
        rate = max(least_size, np.sqrt(np.mean(x**2))) * min(lr, 1 / np.sqrt(n))
        if g.ndim > 1:
            row = row + ((g**2).mean(-1, keepdims=True) - row) * share
            column = column + ((g**2).mean(-2, keepdims=True) - column) * share
            estimate = row * column / np.maximum(row.mean(-2, keepdims=True), least)
        else:
            estimate = square = square + (g**2 - square) * share
        update = g / np.sqrt(np.maximum(estimate, least**2))
        x = x * (1 - lr * shrink)
        x = x - update * rate / max(1.0, np.sqrt(np.mean(update**2)) / d)
    return x


@pytest.mark.parametrize("shape", [(5, 7), (6,), (2, 3, 4)])
@pytest.mark.parametrize("shrink", [0.0, 0.1])
def test_adafactor_follows_its_formula(shape, shrink):
    rng = np.random.default_rng(5)
    x, gradients = rng.standard_normal(shape), rng.standard_normal((4, *shape)) * 3
    p = nn.Parameter(weft.asarray(x))
    opt = optim.Adafactor([p], lr=0.2, weight_decay=shrink, d=0.7)
    for k, g in enumerate(gradients):
        if k == 2:  # goes on from a saved state
            state, opt = opt.state_dict(), optim.Adafactor([p], d=3.0)
            opt.load_state_dict(state)
        p.grad = weft.Tensor(weft.asarray(g))
        opt.step()
    eps = np.finfo("float64").eps
    want = adafactor(x, gradients, 0.2, -0.8, shrink, eps, 1e-3, 0.7)
    np.testing.assert_allclose(p.numpy(), want, rtol=1e-10)


@pytest.mark.parametrize("shape", [(8, 8), (12, 5), (5, 12)])
@pytest.mark.parametrize("kind", [None, "match_rms_adamw"])
@pytest.mark.parametrize("nesterov", [True, False])
def test_muon_follows_its_formula(shape, kind, nesterov):
    rng = np.random.default_rng(6)
    x, gradients = rng.standard_normal(shape), rng.standard_normal((3, *shape))
    p = nn.Parameter(weft.asarray(x))
    opt = optim.Muon([p], lr=0.1, adjust_lr_fn=kind, nesterov=nesterov)
    mean, want = 0.0, x
    for g in gradients:
        p.grad = weft.Tensor(weft.asarray(g))
        opt.step()
        mean = mean + (g - mean) * 0.05
        y = g + (mean - g) * 0.95 if nesterov else mean
        y = y / np.linalg.norm(y)
        for _ in range(5):
            gram = y @ y.T if shape[0] <= shape[1] else y.T @ y
            part = -4.775 * gram + 2.0315 * gram @ gram
            y = 3.4445 * y + (part @ y if shape[0] <= shape[1] else y @ part)
        rows, columns = shape
        rate = 0.2 * max(shape) ** 0.5 if kind else max(1, columns / rows) ** 0.5
        want = want * (1 - 0.1 * 0.1) - 0.1 * rate * y
    # The iteration computes in bfloat16.
    np.testing.assert_allclose(p.numpy(), want, atol=0.05 * 0.1 * 3 * (rate + 1))


def test_optimizers_of_matrices_refuse_what_they_cannot_take():
    with pytest.raises(weft.ShapeError) as caught:
        optim.Muon(nn.Linear(2, 3).parameters())
    assert caught.value.code == "optim.muon.shape"
    weight = nn.Parameter(weft.ones((2, 2)))
    with pytest.raises(weft.ArgumentError) as caught:
        optim.Muon([weight], adjust_lr_fn="half")
    assert caught.value.code == "optim.muon.rate"
    weight._parted = ("a group",)
    for make in (optim.Muon, optim.Adafactor):
        with pytest.raises(weft.ArgumentError) as caught:
            make([weight])
        assert caught.value.code == "optim.params.piece"
