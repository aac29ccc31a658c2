# SPDX-License-Identifier: Apache-2.0
"""Methods written in Python: each is defined once, in one class, and traced values of weft.compile have the arithmetic."""

import inspect

import numpy as np
import pytest

import weft
from weft import _methods
from weft._methods.tools import adopt, also, filled


@pytest.mark.parametrize("families", [_methods.OF_ARRAYS, _methods.OF_TENSORS])
def test_no_method_is_defined_twice(families):
    names = [name for family in families for name in _methods.members(family)]
    assert len(names) == len(set(names))


def test_a_second_definition_is_refused():
    class Core:
        def own(self):
            return 1

    class One:
        def left(self):
            return 2

    class Two:
        def left(self):
            return 3

    class Three:
        def own(self):
            return 4

    for families in ((One, Two), (Three,)):
        with pytest.raises(weft.ArgumentError) as refused:
            adopt(Core, *families)
        assert refused.value.code == "python.method.twice"
    assert not hasattr(Core, "left") and Core().own() == 1  # all or nothing
    adopt(Core, One, Three, instead=("own",))
    assert Core().left() == 2 and Core().own() == 4
    for decorate in (filled(lambda name: None, "left"), also(left="left")):
        with pytest.raises(weft.ArgumentError) as refused:
            decorate(One)
        assert refused.value.code == "python.method.twice"


# Methods that take more than another value: a call of each.
CALLS = {
    "addcdiv": lambda x, y, m: x.addcdiv(y, y + 3, value=2),
    "addcmul": lambda x, y, m: x.addcmul(y, y, value=0.5),
    "addmm": lambda x, y, m: x.addmm(m, m, beta=2),
    "addr": lambda x, y, m: x.addr(x[0], y[1]),
    "addmv": lambda x, y, m: x.addmv(m, y[0]),
    "addbmm": lambda x, y, m: x.addbmm(x.reshape(1, 3, 3), y.reshape(1, 3, 3)),
    "baddbmm": lambda x, y, m: x.baddbmm(m.reshape(1, 3, 3), m.reshape(1, 3, 3)),
    "clamp": lambda x, y, m: x.clamp(-0.5, 0.5),
    "clamp_max": lambda x, y, m: x.clamp_max(0.25),
    "clamp_min": lambda x, y, m: x.clamp_min(0.25),
    "dist": lambda x, y, m: x.dist(y, 3),
    "lerp": lambda x, y, m: x.lerp(y, 0.25),
    "masked_fill": lambda x, y, m: x.masked_fill(x > 0, 7.0),
    "norm": lambda x, y, m: x.norm(dim=1) + x.norm(3),
    "mv": lambda x, y, m: x.mv(y[0]),
    "dot": lambda x, y, m: x[0].dot(y[0]),
    "vdot": lambda x, y, m: x[0].vdot(y[0]),
    "outer": lambda x, y, m: x[0].outer(y[0]),
    "ger": lambda x, y, m: x[0].ger(y[0]),
    "pow": lambda x, y, m: (x * x + 1).pow(y),
    "xlogy": lambda x, y, m: x.xlogy(y * y + 0.5),
    "round": lambda x, y, m: (x * 3).round(),
    "where": lambda x, y, m: x.where(y > 0, m),
    **{name: (lambda x, y, m, name=name: getattr(x * 0.4 + 2, name)()) for name in ("acosh",)},
    **{
        name: (lambda x, y, m, name=name: getattr(x * x + 0.5, name)())
        for name in ("log", "log2", "log10", "sqrt", "rsqrt", "log1p", "reciprocal")
    },
    **{
        name: (lambda x, y, m, name=name: getattr(x * 0.2 + 0.5, name)())
        for name in ("logit", "atanh", "acos", "asin", "arccos", "arcsin")
    },
}


@pytest.mark.parametrize("name", sorted(_methods.members(_methods.Arithmetic)))
def test_arithmetic_inside_a_compiled_function(name, rng):
    x, y, m = (
        weft.Tensor(rng.uniform(-1, 1, (3, 3)).astype("float32"), requires_grad=False)
        for _ in range(3)
    )
    method = getattr(weft.Tensor, name)
    plain = len(inspect.signature(method).parameters) == 1
    call = CALLS.get(name) or (
        (lambda x, y, m: getattr(x, name)()) if plain else (lambda x, y, m: getattr(x, name)(y))
    )
    expected, got = call(x, y, m), weft.compile(call)(x, y, m)
    np.testing.assert_allclose(got.numpy(), expected.numpy(), rtol=2e-6, atol=2e-6)


def test_composed_arithmetic_is_one_kernel():
    compiled = weft.compile(lambda x, y: x.addcmul(y, y).lerp(y, 0.5).clamp(-1, 1).erfc())
    x, y = (weft.Tensor(np.linspace(-2, 2, 12, dtype="float32"), requires_grad=False) for _ in "xy")
    compiled(x, y)
    assert compiled.kernels == 1
