# SPDX-License-Identifier: Apache-2.0
"""Functions that are composed of elementwise ones are one kernel on a device with a grid, and equal the host's."""

import numpy as np
import pytest
from present import present

import weft
from weft import Tensor, _core, special

#: Name: the function of one or two arrays.
FUNCTIONS = {
    "y0": lambda a, b: special.y0(weft.abs(a) + 0.1),
    "i1e": lambda a, b: special.i1e(a),
    "log_ndtr": lambda a, b: special.log_ndtr(a),
    "erfc": lambda a, b: special.erfc(a),
    "lgamma": lambda a, b: weft.abs(a).lgamma(),
    "sinc": lambda a, b: a.sinc(),
    "logit": lambda a, b: a.logit(0.01),
    "lerp": lambda a, b: a.lerp(b, 0.3),
    "lerp along rows": lambda a, b: a.lerp(b[..., :1], 0.3),
    "addcdiv": lambda a, b: a.addcdiv(b, weft.abs(b) + 1.0),
    "xlogy": lambda a, b: a.xlogy(weft.abs(b)),
    "nan_to_num": lambda a, b: (a / (b * 0.0)).nan_to_num(),
    "fmod": lambda a, b: a.fmod(b),
}
ONE = {
    "erfc": special.erfc,
    "log_ndtr": special.log_ndtr,
    "i1e": special.i1e,
    "sinc": lambda a: a.sinc(),
    "logit": lambda a: a.logit(0.01),
}


@pytest.fixture(scope="module", params=["opencl:0", "cuda:0"])
def grid(request):
    return present(request.param)


def operands(dtype, shape=(7, 143)):
    rng = np.random.default_rng(20)
    a, b = (rng.standard_normal(shape).astype("float32") * 2 for _ in range(2))
    a.flat[::31], b.flat[::17] = 0.0, 1.0
    return [weft.asarray(x).astype(dtype) for x in (a, b)]


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16"])
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("wrapped", [False, True])
def test_the_host_has_the_same(grid, name, dtype, wrapped):
    f = FUNCTIONS[name]
    a, b = operands(dtype)
    want = f(a, b)
    x, y = (v.to(grid) for v in (a, b))
    if wrapped:
        x, y = (Tensor(v, requires_grad=False) for v in (x, y))
    got = f(x, y)
    assert (
        isinstance(got, Tensor) == wrapped and got.dtype == want.dtype and got.shape == want.shape
    )
    got = (got.data if wrapped else got).to("cpu")
    got, want = (v.astype("float64").numpy() for v in (got, want))
    # Of 16-bit floats single operations around the function are rounded, too.
    tolerance = {"float32": 4e-6, "float64": 2e-14, "bfloat16": 4e-2, "float16": 6e-3}[dtype]
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", ONE)
def test_one_launch(grid, name, dtype):
    if str(grid).startswith("cuda"):
        pytest.skip("a graph counts its nodes")
    x = operands(dtype)[0].to(grid)
    work = lambda: ONE[name](x)
    for _ in range(2):  # numbers that are seen once are not traced
        work()
    recording, _ = _core._record(_core.MemoryPool(grid), work)
    assert recording.launches == 1


def test_numbers_that_change_do_not_build_kernels(grid):
    a, b = (v.to(grid) for v in operands("float32"))
    x, y = (v.to("cpu").numpy() for v in (a, b))
    for weight in np.linspace(0.0, 1.0, 9):
        got = a.lerp(b, float(weight)).to("cpu").numpy()
        np.testing.assert_allclose(got, x + (y - x) * np.float32(weight), rtol=1e-5, atol=1e-5)


def test_gradients_are_those_of_the_composition(grid):
    a, b = operands("float32")
    for f in (FUNCTIONS["erfc"], FUNCTIONS["xlogy"], FUNCTIONS["sinc"]):
        found = []
        for device in ("cpu", grid):
            x = Tensor(a.to(device), requires_grad=True)
            f(x, b.to(device)).sum().backward()
            found.append(
                x.grad.data.to("cpu").numpy()
                if hasattr(x.grad, "data")
                else x.grad.to("cpu").numpy()
            )
        np.testing.assert_allclose(found[1], found[0], rtol=2e-5, atol=2e-5)
