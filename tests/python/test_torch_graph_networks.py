# SPDX-License-Identifier: Apache-2.0
"""Programs over graphs under torch.compile(backend="weft"): rows gathered, added up, reduced at positions."""

import pytest

torch = pytest.importorskip("torch")

from weft.torch import _version  # noqa: E402

if not _version.COMPILES:
    pytest.skip(
        f"torch.compile needs torch 2.4, this is {torch.__version__}: tools/test_torch2 runs this file",
        allow_module_level=True,
    )

from weft.torch import _backend, opinfo  # noqa: E402
from weft.torch._backend import Options  # noqa: E402

NODES, EDGES, WIDTH = 13, 47, 6


def _ends():
    """The two ends of random edges; some nodes have none, some are counted from the end."""
    source = torch.randint(0, NODES - 2, (EDGES,))
    source[::5] -= NODES
    return source, torch.randint(0, NODES - 3, (EDGES,))


def _compiled(function, *tensors, gradients=True):
    """Compares results and gradients with eager's, and gives the names of the operators that weft computed."""
    tally, programs = opinfo.Tally(), []
    before = _backend.watch(programs)
    options = Options(prefer="weft")
    torch.manual_seed(0)
    run = opinfo.with_gradients if gradients else opinfo.without_gradients
    kept = tally.add

    def add(name, found):
        programs.extend(found)
        kept(name, found)

    tally.add = add
    try:
        opinfo.check(lambda *t: [function(*t)], list(tensors), tally, options, "case", run)
    finally:
        _backend.watch(before)
    assert (tally.passed, tally.total) == (1, 1), (tally.failures, tally.untraced, tally.differing)
    assert not tally.faults
    return {op.name for p in programs for s in p.steps if s.where == "weft" for op in s.unit.ops}


def _messages_by_index(x, source, target):
    return torch.zeros_like(x).index_add(0, target, x[source])


def _messages_by_expanded_index(x, source, target):
    at = target[:, None].expand(-1, x.shape[1])
    return x.scatter_add(0, at, x.index_select(0, source % NODES))


def _messages_of_three_axes(x, source, target):
    x = x.reshape(NODES, 2, WIDTH // 2)
    return torch.ones_like(x).index_put((target,), x[source], accumulate=True)


@pytest.mark.parametrize("function", [_messages_by_index, _messages_by_expanded_index, _messages_of_three_axes])  # fmt: skip
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_gathered_rows_are_added_without_being_stored(function, dtype):
    source, target = _ends()
    found = _compiled(function, torch.randn(NODES, WIDTH, dtype=dtype), source, target)
    assert "weft.add_rows.default" in found
    assert "aten.index.Tensor" not in found


def test_gathered_rows_that_are_read_twice_are_kept():
    source, target = _ends()

    def both(x, source, target):
        rows = x[source]
        return torch.zeros_like(x).index_add(0, target, rows).sum() + rows.square().sum()

    found = _compiled(both, torch.randn(NODES, WIDTH), source, target, gradients=False)
    assert "weft.add_rows.default" not in found


def test_positions_outside_are_refused_by_fused_messages():
    source, target = _ends()
    source[3] = NODES
    f = torch.compile(_messages_by_index, backend="weft", options={"prefer": "weft"})
    with pytest.raises((IndexError, RuntimeError)):
        f(torch.randn(NODES, WIDTH), source, target)


@pytest.mark.parametrize("reduce", ["sum", "mean", "prod", "amax", "amin"])
@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64, torch.bfloat16])
@pytest.mark.parametrize("index", ["expanded", "own", "part", "last axis"])
def test_values_reduced_at_positions(reduce, include_self, dtype, index):
    torch.manual_seed(1)
    draw = lambda *shape: (  # noqa: E731
        torch.randint(-4, 5, shape) if dtype is torch.int64 else torch.randn(shape).to(dtype)
    )
    x, source, dim = draw(NODES, WIDTH), draw(EDGES, WIDTH), 0
    at = torch.randint(0, NODES, (EDGES, WIDTH))
    if index != "own":
        at = at[:, :1].expand(EDGES, WIDTH)
    if index == "part":
        at = at[: EDGES // 2, : WIDTH - 2]
    if index == "last axis":
        x, source, at, dim = x.t().contiguous(), source.t().contiguous(), at.t(), 1
    if dtype.is_floating_point and reduce in ("amax", "amin"):
        source.view(-1)[7] = float("nan")
    found = _compiled(
        lambda x, s, at: x.scatter_reduce(dim, at, s, reduce, include_self=include_self), x, source, at, gradients=False
    )  # fmt: skip
    assert any(name.startswith("aten.scatter_") for name in found)


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_an_expanded_index_gathers_and_scatters_rows(dim):
    x, n = torch.randn(5, 7, 4), (5, 7, 4)[dim]
    shape = [1, 1, 1]
    shape[dim] = 9
    wide = [5, 7, 4]
    wide[dim] = 9
    at = torch.randint(0, n, (9,)).reshape(shape).expand(wide)
    source = torch.randn(wide)
    _compiled(lambda x, at: x.gather(dim, at).sin(), x, at)
    _compiled(lambda x, s, at: x.scatter_add(dim, at, s), x, source, at)
    once = torch.randperm(n).reshape([n if a == dim % 3 else 1 for a in range(3)]).expand(5, 7, 4)
    _compiled(lambda x, s, at: x.scatter(dim, at, s), x, torch.randn(5, 7, 4), once)
    _compiled(lambda x, at: x.scatter(dim, at[..., :2], 2.5), x, once)
