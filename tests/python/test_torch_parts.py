# SPDX-License-Identifier: Apache-2.0
"""Gradients of the parts of a tensor: joined where they are all of it, added up where they are not."""

import pytest

torch = pytest.importorskip("torch")

from weft.torch import _version  # noqa: E402

if not _version.COMPILES:
    pytest.skip(
        f"torch.compile needs torch 2.4, this is {torch.__version__}: tools/test_torch2 runs this file",
        allow_module_level=True,
    )

from watched import run  # noqa: E402


def _turned(x):
    a, b = x[..., :3], x[..., 3:]
    return torch.cat([-b, a], -1)


#: function of x (3, 4, 6), whether its backward graph is free of gradients of parts, of which kind the joint is
CASES = {
    "all of an axis": (lambda x: x[0].sin() * x[1].cos() + x[2] ** 2, True, "aten.stack.default"),
    "another order": (lambda x: x[2].sin() * x[0].cos() + x[1] ** 2, True, "aten.stack.default"),
    "halves": (lambda x: x[..., :2].sin().sum(-1) + x[..., 2:].cos().sum(-1), True, "aten.cat.default"),
    "halves beside the whole": (lambda x: x * x.cos() + _turned(x) * x.sin(), True, "aten.cat.default"),
    "negative places": (lambda x: x[-1].sin() * x[-3] + x[-2], True, "aten.stack.default"),
    "a part twice": (lambda x: x[0].sin() * x[1] + x[2] + x[0], False, None),
    "not all": (lambda x: x[0].sin() * x[2], False, None),
    "overlapping": (lambda x: x[:2].sin().sum(0) + x[1:].cos().sum(0), False, None),
    "with steps": (lambda x: x[:, ::2].sin() * x[:, 1::2], False, None),
    "beside sums of others": (lambda x: (x[0].sin() * x[1] * x.cos().sum(0) + x[2]) + x.sum(0), True, "aten.stack.default"),
    "two axes": (lambda x: x[0].sum(0) * x[1].sum(0) + x[2].sum(0) + x[:, 0].sum(0) * x[:, 1:].sum((0, 1)), True, None),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("inner", [False, True])
def test_gradients_of_parts(name, inner):
    """inner: x is a value of the graph, not an argument, whose gradient is a result."""
    function, free, joint = CASES[name]

    def program(c):
        x = torch.randn(3, 4, 6, dtype=torch.float64, requires_grad=True)
        f = c((lambda x: function(x.exp() * 0.5)) if inner else function)
        out = []
        for _ in range(2):
            y = f(x)
            (grad,) = torch.autograd.grad(torch.cos(y).sum(), x)
            out += [y.detach(), grad]
        return out

    want, _ = run(program, lambda f: f)
    got, made = run(program, lambda f: torch.compile(f, backend="weft", options={"prefer": "weft"}))
    for g, w in zip(got, want, strict=True):
        torch.testing.assert_close(g, w, check_stride=True)
    names = [op.name for p in made for op in p.graph.ops]
    if joint is not None:
        assert joint in names and not any(
            "select_backward" in n or "slice_backward" in n for n in names
        )
    if not free:
        assert any("select_backward" in n or "slice_backward" in n for n in names)
