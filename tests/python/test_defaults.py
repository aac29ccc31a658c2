# SPDX-License-Identifier: Apache-2.0
"""Optional arguments that weft shares with PyTorch or NumPy have the same default there, but for those named here."""

import inspect

import numpy as np
import pytest
import weft
import weft.nn.functional
from weft._functions import later

torch = pytest.importorskip("torch")

ABSENT = (None, np._NoValue, "warn")  # "not given", as each side spells it
# What another default means is the same, or is said on the page of differences from PyTorch.
EXCEPTIONS = {
    ("torch.nn", "ModuleList", "modules"): "no modules: () and None",
    ("torch.nn", "ParameterList", "values"): "no parameters: () and None",
    ("torch.nn", "NLLLoss", "ignore_index"): "None stands for -100 where the labels are integers",
    ("torch.nn", "NLLLoss2d", "ignore_index"): "as NLLLoss",
    ("torch.optim", "SparseAdam", "betas"): "as Adam",
    ("torch.nn.functional", "nll_loss", "ignore_index"): "None stands for -100",
    ("torch.nn.functional", "cross_entropy", "ignore_index"): "None stands for -100",
    ("torch.nn", "CrossEntropyLoss", "ignore_index"): "None stands for -100",
    ("torch.nn", "LeakyReLU", "negative_slope"): "None stands for 0.01, or alpha=",
    ("torch.nn", "PReLU", "init"): "None stands for 0.25",
    ("torch.nn", "Transformer", "activation"): "a name and the function",
    ("torch.nn", "TransformerDecoderLayer", "activation"): "a name and the function",
    ("torch.nn", "TransformerEncoderLayer", "activation"): "a name and the function",
    ("torch.nn.functional", "glu", "dim"): "None stands for -1, or axis=",
    ("torch.nn.functional", "normalize", "dim"): "None stands for 1, or axis=",
    ("torch.nn.functional", "leaky_relu", "negative_slope"): "None stands for 0.01, or alpha=",
    ("torch.optim", "Adam", "betas"): "None stands for (0.9, 0.999), or beta1=, beta2=",
    ("torch.optim", "AdamW", "betas"): "None stands for (0.9, 0.999), or beta1=, beta2=",
    ("torch.optim", "Adam", "weight_decay"): "None stands for 0.0",
    ("torch.optim", "AdamW", "weight_decay"): "None stands for 0.01",
    ("torch.optim", "SGD", "lr"): "PyTorch 1 requires it",
    ("numpy", "asfarray", "dtype"): "None stands for the default float",
    ("numpy", "eye", "dtype"): "None stands for float32 here",
    ("numpy", "fromfunction", "dtype"): "a name and the class",
    ("numpy", "genfromtxt", "dtype"): "None stands for float64",
    ("numpy", "loadtxt", "dtype"): "None stands for float64",
    ("numpy", "unique", "equal_nan"): "NaN are as many as there are, as in PyTorch and the array standard",
    ("numpy", "require", "requirements"): "no requirements: None and ()",
    ("numpy", "tri", "dtype"): "None stands for float32 here",
    ("numpy", "indices", "dtype"): "None stands for int64",
    ("numpy", "quantile", "interpolation"): "PyTorch's default, which NumPy's method= replaces",
    ("numpy", "quantile", "method"): "None stands for interpolation=",
}  # fmt: skip


def defaults(function):
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):  # written in C
        return {}
    return {k: p.default for k, p in parameters.items() if p.default is not p.empty}


def same(label, a, b):
    if label == "numpy.fft" and {str(a), str(b)} == {"backward", "None"}:
        return True  # documented as the same
    return (
        a is b
        or type(a) is not type(b)
        and {a in ABSENT or a is False, b in ABSENT} == {True}
        or (a == b and isinstance(a, type(b)) or {type(a), type(b)} == {int, float} and a == b)
    )


@pytest.mark.parametrize(
    ("ours", "theirs", "least"),
    [
        (weft.nn, torch.nn, 250),
        (weft.nn.functional, torch.nn.functional, 100),
        (weft.optim, torch.optim, 50),
        (weft.optim.lr_scheduler, torch.optim.lr_scheduler, 30),
        (weft.init, torch.nn.init, 15),
        (weft, np, 45),
        (weft.fft, np.fft, 30),
        (weft.linalg, np.linalg, 2),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_defaults(ours, theirs, least):
    label, compared, wrong = theirs.__name__, 0, []
    # Names that are loaded on first use as well, whatever other tests have used.
    for name in sorted({*vars(ours), *later.names(ours.__name__)}):
        if name.startswith("_") or name not in vars(theirs):
            continue
        pairs = [(getattr(ours, name), getattr(theirs, name))]
        if all(isinstance(x, type) and hasattr(x, "forward") for x in pairs[0]):
            pairs.append((pairs[0][0].forward, pairs[0][1].forward))
        for here, there in pairs:
            a, b = defaults(here), defaults(there)
            for key in a.keys() & b.keys():
                compared += 1
                if not same(label, a[key], b[key]) and (label, name, key) not in EXCEPTIONS:
                    wrong.append(f"{label}.{name}({key}={b[key]!r}), here {a[key]!r}")
    assert not wrong, "\n".join(wrong)
    assert compared >= least


def test_every_exception_is_one():
    modules = {m.__name__: m for m in (torch.nn, torch.nn.functional, torch.optim, np)}
    here = {"torch.nn": weft.nn, "torch.nn.functional": weft.nn.functional, "numpy": weft}
    here["torch.optim"] = weft.optim
    for label, name, key in EXCEPTIONS:
        a, b = (defaults(getattr(m[label], name)) for m in (here, modules))
        assert key in a and (key not in b or not same(label, a[key], b[key])), (label, name, key)


REDUCTIONS = ["sum", "prod", "max", "min", "all", "any", "mean"]


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_of_compiled_values(name):
    x = weft.asarray(np.arange(12.0, dtype=np.float32).reshape(3, 4) - 5)
    for axis, keepdims in ((None, None), (1, None), (0, True), ((0, 1), False)):
        options = {} if keepdims is None else {"keepdims": keepdims}
        want = getattr(np, name)(x.numpy(), axis=axis, **options)
        got = weft.compile(lambda v: getattr(v, name)(axis, **options))(x).numpy()  # noqa: B023
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=1e-6)
