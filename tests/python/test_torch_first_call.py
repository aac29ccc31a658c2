# SPDX-License-Identifier: Apache-2.0
"""The first call of a compiled graph: what it keeps for later processes, what it may not repeat, kernels built side by side."""

import json

import pytest

torch = pytest.importorskip("torch")

from weft.torch import _version  # noqa: E402

if not _version.COMPILES:
    pytest.skip(f"torch.compile needs torch 2.4, this is {torch.__version__}: tools/test_torch2 runs this file", allow_module_level=True)  # fmt: skip

from test_waits_for_ever import ended  # noqa: E402

import weft  # noqa: E402
import weft.torch as wt  # noqa: E402
from weft import _core  # noqa: E402
from weft.torch import _backend, program, rules, side_by_side, whole  # noqa: E402

nn, F = torch.nn, torch.nn.functional


@pytest.fixture
def disk(monkeypatch):
    """{key: content} in place of the cache on disk."""
    held = {}
    monkeypatch.setattr(_core, "_load_cached", held.get)
    monkeypatch.setattr(_core, "_store_cached", held.__setitem__)
    return held


@pytest.fixture
def measured(monkeypatch):
    """The steps that are timed from now on; none is known from before."""
    seen = []
    inner = program.measure
    monkeypatch.setattr(program, "_costs", {})
    monkeypatch.setattr(program, "measure", lambda runs, *rest: seen.append(runs) or inner(runs, *rest))  # fmt: skip
    return seen


def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(7, 9), nn.GELU(), nn.LayerNorm(9), nn.Linear(9, 3))


def new_process(monkeypatch):
    torch._dynamo.reset()
    monkeypatch.setattr(program, "_costs", {})


def test_a_later_process_measures_nothing(disk, measured, monkeypatch):
    m, x = model(), torch.randn(5, 7)
    programs = []
    before = _backend.watch(programs)
    for again in range(2):
        new_process(monkeypatch)
        measured.clear()
        torch.testing.assert_close(torch.compile(m, backend="weft")(x), m(x))
        assert bool(measured) != bool(again)
    _backend.watch(before)
    first, second = ([(s.where, s.reason, s.seconds) for s in p.steps] for p in programs)
    assert first == second and len(disk) == 1


@pytest.mark.parametrize(
    "content", [b"", b"nonsense", b"[]", b"7", b"[[1]]", b'[["weft", true, "", {"weft": "x"}]]']
)
def test_damaged_entries_are_measured_again(disk, measured, monkeypatch, content):
    m, x = model(), torch.randn(5, 7)
    new_process(monkeypatch)
    torch.compile(m, backend="weft")(x)
    (key,) = disk
    disk[key] = content
    new_process(monkeypatch)
    measured.clear()
    torch.testing.assert_close(torch.compile(m, backend="weft")(x), m(x))
    assert measured and json.loads(disk[key])


def test_another_number_of_threads_is_another_entry(disk, monkeypatch):
    m, x, threads = model(), torch.randn(5, 7), torch.get_num_threads()
    try:
        for count in (1, 2):
            torch.set_num_threads(count)
            new_process(monkeypatch)
            torch.compile(m, backend="weft")(x)
    finally:
        torch.set_num_threads(threads)
    assert len(disk) == 2


def test_a_disk_that_takes_nothing(monkeypatch):
    def full(key, content):
        raise weft.Error("no space left")

    monkeypatch.setattr(_core, "_load_cached", lambda key: None)
    monkeypatch.setattr(_core, "_store_cached", full)
    m, x = model(), torch.randn(5, 7)
    new_process(monkeypatch)
    torch.testing.assert_close(torch.compile(m, backend="weft")(x), m(x))


def test_buffers_change_once_in_the_first_call(disk, monkeypatch):
    """Programs are compared by whole calls; neither buffers nor random numbers see that."""
    net = lambda: nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Dropout(0.5))  # noqa: E731
    ours, theirs = net(), net()
    theirs.load_state_dict(ours.state_dict())
    x = torch.randn(2, 3, 8, 8)
    new_process(monkeypatch)
    compiled = torch.compile(ours, backend="weft")
    for _ in range(3):
        torch.manual_seed(3)
        got = compiled(x), torch.rand(2)
        torch.manual_seed(3)
        want = theirs(x), torch.rand(2)
        torch.testing.assert_close(got, want)
    torch.testing.assert_close(ours[1].running_mean, theirs[1].running_mean)
    torch.testing.assert_close(ours[1].running_var, theirs[1].running_var)
    assert ours[1].num_batches_tracked == 3


def test_operators_of_others_run_once(disk, monkeypatch):
    calls = []

    @torch.library.custom_op("weft_tests::noted", mutates_args=())
    def noted(x: torch.Tensor) -> torch.Tensor:
        calls.append(1)
        return x * 2

    @noted.register_fake
    def _(x):
        return torch.empty_like(x)

    new_process(monkeypatch)
    x = torch.randn(6, 5)
    got = torch.compile(lambda x: noted(x.sin() + 1).cos() * 3, backend="weft")(x)
    assert len(calls) == 1
    torch.testing.assert_close(got, ((x.sin() + 1) * 2).cos() * 3)


def test_steps_are_timed_without_the_modes_of_a_first_call(disk, measured, monkeypatch):
    """torch watches the operators of a first call in a mode that makes each slower: it must not count."""
    inside = []
    new_process(monkeypatch)

    def watched(runs, *rest):
        def note(run):
            return lambda args: inside.append(torch._C._len_torch_dispatch_stack()) or run(args)

        return program_measure({side: note(run) for side, run in runs.items()}, *rest)

    program_measure = program.measure
    monkeypatch.setattr(program, "measure", watched)
    torch.compile(model(), backend="weft")(torch.randn(5, 7))
    assert inside and not any(inside)


def test_kernels_are_built_side_by_side(monkeypatch):
    """On a device with a grid each kind of step runs once on zeros before the first call; faults there change nothing."""
    if "opencl:0" not in [d.name for d in weft.devices() if d.available]:
        pytest.skip("torch's graphs on a device with a grid: opencl:0 is absent")
    built, counts = [], []
    inner = side_by_side._build
    monkeypatch.setattr(side_by_side, "_built", set())
    monkeypatch.setattr(side_by_side, "_build", lambda p, step: built.append(step) or inner(p, step))  # fmt: skip
    m, x = model(), torch.randn(5, 7)
    for _ in range(2):
        torch._dynamo.reset()
        got = torch.compile(m, backend="weft", options={"device": "opencl"})(x)
        torch.testing.assert_close(got, m(x), rtol=1e-4, atol=1e-5)
        counts.append(len(built))
    assert counts[0] > 1 and counts[0] == counts[1]  # the second time all kinds are known


@pytest.mark.parametrize("fault", [ValueError("planted"), RuntimeError("planted")], ids=lambda f: type(f).__name__)  # fmt: skip
def test_a_fault_of_building_is_named(monkeypatch, fault):
    """What building a step on zeros raised, with the graph and its operators; the results are right all the same."""
    if "opencl:0" not in [d.name for d in weft.devices() if d.available]:
        pytest.skip("torch's graphs on a device with a grid: opencl:0 is absent")
    inner, building = _core._build_together, []

    def together(like, run):
        building.append(run)
        raise fault

    m, x = model(), torch.randn(5, 7)
    with monkeypatch.context() as planted:
        planted.setattr(side_by_side, "_built", set())
        planted.setattr(_core, "_build_together", together)
        report = wt.explain(m, x, options={"device": "opencl"})
        assert not side_by_side._built  # another program tries again
    assert building and report.share == 1.0
    for text in report.faults():
        assert text.startswith("graph ") and f"{type(fault).__name__}: planted" in text
    assert any("aten.native_layer_norm" in text for text in report.faults())
    assert all(f"fault (1): {text}" in str(report) for text in report.faults())
    monkeypatch.setattr(_core, "_build_together", inner)
    torch._dynamo.reset()
    assert not wt.explain(m, x, options={"device": "opencl"}).faults()


def test_a_refusal_that_the_first_call_meets_again_is_no_fault(monkeypatch):
    if "opencl:0" not in [d.name for d in weft.devices() if d.available]:
        pytest.skip("torch's graphs on a device with a grid: opencl:0 is absent")
    rules.load()

    def refused(c, *given):
        raise rules.Unsupported("planted")

    monkeypatch.setattr(side_by_side, "_built", set())
    monkeypatch.setitem(rules.ARRAYS, "aten.mm.default", refused)
    monkeypatch.setitem(rules.FUSED, "aten.sinh.default", lambda c, x: 1 // 0)
    f = lambda x: (x @ x).sinh() @ x.cos().cumsum(0)  # noqa: E731
    report = wt.explain(f, torch.randn(5, 5), options={"device": "opencl"})
    assert ("aten.mm.default", "planted") in report.reasons()
    assert len(report.faults()) == 1 and "aten.sinh" in str(report.faults())


@pytest.mark.parametrize("fault", [ZeroDivisionError("planted"), MemoryError("planted")], ids=lambda f: type(f).__name__)  # fmt: skip
def test_what_ends_the_comparison_of_whole_programs_is_named(disk, monkeypatch, fault):
    """All but a lack of memory, for which the sum of steps is meant to do."""

    def refused(*given):
        raise fault

    new_process(monkeypatch)
    monkeypatch.setattr(whole, "measure_whole", refused)
    m, x = model(), torch.randn(5, 7)
    found = wt.explain(m, x).faults()
    named = [text for text in found if "comparison of whole programs" in text]
    assert bool(named) == (not isinstance(fault, MemoryError)), found
    assert all("ZeroDivisionError: planted" in text for text in named)


def test_a_fault_in_a_view_is_named(monkeypatch):
    rules.load()
    monkeypatch.setitem(rules.VIEWS, "aten.permute.default", lambda c, x, axes: 1 // 0)
    f, x = (lambda x: (x.cos() @ x).permute(1, 0) @ x), torch.randn(3, 3)
    report = wt.explain(f, x, options={"prefer": "weft"})
    assert any("aten.permute" in text and "ZeroDivisionError" in text for text in report.faults())
    torch._dynamo.reset()
    torch.testing.assert_close(torch.compile(f, backend="weft", options={"prefer": "weft"})(x), f(x))  # fmt: skip


NESTED = """
import torch, weft.torch
inner = torch.compile(lambda x: torch.sin(x) * 2 + 1, backend="weft")

@torch.library.custom_op("weft_test::nested", mutates_args=())
def nested(x: torch.Tensor) -> torch.Tensor:
    return inner(x).clone()

@nested.register_fake
def _(x):
    return torch.empty_like(x)

outer = torch.compile(lambda x: nested(torch.relu(x)) + 1, backend="weft")
x = torch.randn(7, 33)
expected = torch.sin(torch.relu(x)) * 2 + 2
for _ in range(3):
    torch.testing.assert_close(outer(x), expected)
print("ended")
"""


def test_a_compiled_program_inside_an_operator_of_another():
    if not hasattr(torch.library, "custom_op"):
        pytest.skip(f"torch {torch.__version__} has no custom_op")
    assert ended(NESTED) == "ended\n"
