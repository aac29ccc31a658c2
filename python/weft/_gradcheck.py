# SPDX-License-Identifier: Apache-2.0
"""Gradients of a function beside differences, and derivatives with PyTorch's order of arguments: weft.autograd offers them."""

from __future__ import annotations

import math

import weft

from . import _core
from ._core import NDArray, Tensor
from ._errors import error as _error

GradcheckError = _core.ArgumentError  # what gradcheck raises where gradients are wrong


def _tuple(x):
    return tuple(x) if isinstance(x, (tuple, list)) else (x,)


def _is_float(x):
    return isinstance(x, (Tensor, NDArray)) and x.dtype.kind in "fc"


def _outputs(f, inputs):
    return [y for y in _tuple(f(*inputs)) if _is_float(y)]


def _parts(x):
    """The directions of one element: the real one, and the imaginary one of a complex number."""
    return (1.0, 1j) if x.dtype.kind == "c" else (1.0,)


def _slopes(f, inputs, k, at, unit, eps):
    """Differences of all results along one direction of one element."""
    found = []
    for sign in (1.0, -1.0):
        moved = list(inputs)
        data = inputs[k].data.copy()
        data[at] = data[at] + sign * eps * unit
        moved[k] = Tensor(data, requires_grad=True)
        found.append([y.detach().data if isinstance(y, Tensor) else y for y in _outputs(f, moved)])
    return [(a - b) / (2 * eps) for a, b in zip(*found)]


def _worst(f, inputs, eps, atol, rtol):
    """A text about the first gradient that is wrong, or None."""
    wanted = [k for k, x in enumerate(inputs) if isinstance(x, Tensor) and x.requires_grad]
    outputs = _outputs(f, inputs)
    for k in wanted:
        x = inputs[k]
        for at in _indices(x.shape):
            for unit in _parts(x):
                numeric = _slopes(f, inputs, k, at, unit, eps)
                for j, y in enumerate(outputs):
                    text = _compared(y, x, inputs, numeric[j], at, unit, (j, k), atol, rtol)
                    if text is not None:
                        return text
    return None


def _indices(shape):
    import itertools

    return itertools.product(*(range(n) for n in shape))


_kept: dict = {}


def _gradient(y, x, place, turn):
    """The gradient of one part of one element of y, once for all elements of x."""
    key = (id(y), id(x), place, turn)
    if key not in _kept:
        seed = weft.zeros(tuple(y.shape), dtype=y.dtype, device=y.device)
        seed[place] = turn
        if isinstance(y, Tensor) and y.requires_grad:
            (found,) = weft.autograd.grad(y, [x], grad_outputs=seed, allow_unused=True)
        else:
            found = None
        _kept[key] = None if found is None else found.detach().data
    return _kept[key]


def _compared(y, x, inputs, numeric, at, unit, places, atol, rtol):
    for place in _indices(y.shape):
        for turn in _parts(y):
            slope = complex(numeric[place].item()) if y.shape else complex(numeric.item())
            want = (slope * complex(turn).conjugate()).real
            g = _gradient(y, x, place, turn)
            given = 0j if g is None else complex((g[at] if x.shape else g).item())
            got = (given * complex(unit).conjugate()).real
            if not abs(got - want) <= atol + rtol * abs(want) and not (math.isnan(got) and math.isnan(want)):  # fmt: skip
                return (
                    f"the derivative of result {places[0]} at {place} for input {places[1]} at {tuple(at)} "
                    f"is {got:.9g}, differences give {want:.9g}"
                )
    return None


def _inputs(inputs, name):
    inputs = _tuple(inputs)
    asked = [x for x in inputs if isinstance(x, Tensor) and x.requires_grad]
    if not asked:
        raise _error(
            _core.ArgumentError,
            "autograd.gradcheck.inputs",
            f"{name} of inputs none of which requires a gradient",
            help='weft.tensor(x, dtype="float64", requires_grad=True)',
        )
    narrow = next((x for x in asked if str(x.dtype) not in ("float64", "complex128")), None)
    if narrow is not None:
        raise _error(
            _core.DTypeError,
            "autograd.gradcheck.dtype",
            f"{name} of {narrow.dtype}, in which differences say little",
            ["legal: float64, complex128"],
            help='x.astype("float64")',
        )
    return inputs


def gradcheck(func, inputs, eps=1e-6, atol=1e-5, rtol=1e-3, raise_exception=True, **options):
    """Are the gradients of func(*inputs) those that differences give? Inputs that require gradients are float64 or complex128.

    Each element of each result is compared with atol and rtol. Raises GradcheckError (autograd.gradcheck) for the first one that
    differs, or gives False with raise_exception=False. Other options of PyTorch's are taken and change nothing.
    """
    inputs = _inputs(inputs, "gradcheck")
    try:
        text = _worst(func, inputs, eps, atol, rtol)
    finally:
        _kept.clear()
    if text is None:
        return True
    if not raise_exception:
        return False
    raise _error(
        GradcheckError,
        "autograd.gradcheck",
        text,
        help="mend the function's backward, or loosen atol and rtol where the function is steep",
    )


def gradgradcheck(func, inputs, grad_outputs=None, eps=1e-6, atol=1e-5, rtol=1e-3, raise_exception=True, **options):  # fmt: skip
    """gradcheck of the gradients of func with respect to its inputs, for `grad_outputs` or random numbers."""
    inputs = _inputs(inputs, "gradgradcheck")
    wanted = [k for k, x in enumerate(inputs) if isinstance(x, Tensor) and x.requires_grad]
    outputs = _outputs(func, inputs)
    if grad_outputs is None:
        seeds = [Tensor(weft.random.normal(tuple(y.shape), dtype="float64", device=y.device).astype(y.dtype)) for y in outputs]  # fmt: skip
    else:
        seeds = list(_tuple(grad_outputs))

    def gradients(*args):
        own, seeds = args[: len(inputs)], args[len(inputs) :]
        results = _outputs(func, own)
        pairs = [
            (y, s) for y, s in zip(results, seeds) if isinstance(y, Tensor) and y.requires_grad
        ]
        found = _core.gradients([y for y, _ in pairs], [own[k] for k in wanted], True, [s for _, s in pairs])  # fmt: skip
        return tuple(found)

    return gradcheck(gradients, (*inputs, *seeds), eps, atol, rtol, raise_exception)
