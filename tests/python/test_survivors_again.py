# SPDX-License-Identifier: Apache-2.0
"""What random faults of 2026-11-30 (tools/mutate, seed 222) survived: functions, initialisers, schedules of learning rates, transforms."""

import math

import numpy as np
import pytest
import weft
from refusal import refused

nn, F = weft.nn, weft.nn.functional


def test_whole_numbers_as_text():
    assert [weft.base_repr(n, 2) for n in (0, 5, -5)] == ["0", "101", "-101"]
    assert [weft.base_repr(n, 16, padding=2) for n in (0, 255, -255)] == ["00", "00FF", "-00FF"]


def test_steps_of_empty_tensors():
    x = weft.empty_strided((3, 2), (5, 2), dtype="float32")
    assert x.shape == (3, 2) and tuple(x.data.strides) in ((5, 2), (20, 8))
    assert weft.empty_strided((0, 2), (1, 1)).shape == (0, 2)
    assert weft.is_inference(weft.ones(2)) and not weft.is_inference(weft.Tensor([1.0]))


def test_new_arrays_share_nothing():
    a = weft.asarray([1, 2, 3])
    b = weft.array(a)
    b += 1
    assert a.tolist() == [1, 2, 3] and b.tolist() == [2, 3, 4]
    source = np.arange(3)
    c = weft.array(source)
    source += 10
    assert c.tolist() == [0, 1, 2]


@pytest.mark.parametrize("start", [0, 2**52, 2**60 + 1, -(2**60) - 1])
def test_ranges_of_large_whole_numbers(start):
    got = weft.arange(start, start + 9, 3)
    assert got.dtype == "int64" and got.tolist() == [start, start + 3, start + 6]
    assert weft.arange(start, start, 3).tolist() == []


def test_numbers_of_choices():
    assert 0 <= int(weft.random.choice(5)) < 5
    assert 0 <= int(weft.random.choice(np.int64(5))) < 5
    with pytest.raises(weft.DTypeError):
        weft.random.choice(2.5)
    entries = [3.5, 4.5, 5.5]
    assert sorted(weft.random.permutation(entries).tolist()) == entries
    assert sorted(weft.random.permutation(weft.asarray(entries)).tolist()) == entries


def test_masks_have_no_gradient():
    a, b = (
        weft.Tensor(weft.asarray([True, False, True]), requires_grad=False),
        weft.asarray([True, True, False]),
    )
    for got, want in ((a & b, [1, 0, 0]), (a | b, [1, 1, 1]), (a ^ b, [0, 1, 1])):
        assert not got.requires_grad and got.tolist() == [bool(x) for x in want]
    x = weft.Tensor([1.5, -2.0])
    assert x.imag.tolist() == [0, 0] and x.real.tolist() == [1.5, -2.0]


def test_results_of_numpys_functions_go_where_they_are_sent():
    x, out = weft.asarray([1.0, 4.0, 9.0]), np.zeros(3)
    assert np.sqrt(x, out=out) is out and out.tolist() == [1, 2, 3]
    whole, rest = np.zeros(3), np.zeros(3)
    got = np.divmod(x, 4.0, out=(whole, rest))
    assert got[0] is whole and got[1] is rest and rest.tolist() == [1, 0, 1]
    assert np.add.reduce(x) == 14
    mixed = np.add(np.array([1, "a", None], dtype=object)[:1], x[:1])
    assert list(np.asarray(mixed)) == [2.0]


def test_parts_of_a_data_set():
    data = weft.data.TensorDataset(weft.arange(10), weft.arange(10) * 2)
    parts = weft.data.random_split(data, [0.5, 0.25, 0.25])
    assert [len(p) for p in parts] == [6, 2, 2]
    seen = sorted(int(part[i][0]) for part in parts for i in range(len(part)))
    assert seen == list(range(10))
    assert [len(p) for p in weft.data.random_split(data, [9, 1])] == [9, 1]
    for lengths in ([9, 2], [0.5, 0.25], [11, -1]):
        refused(
            weft.ArgumentError,
            "data.split.lengths",
            lambda n=lengths: weft.data.random_split(data, n),
        )


def test_sparse_starts_have_zeros_in_each_column():
    weight = weft.nn.init.sparse_(weft.empty((10, 4)), 0.35, std=1.0)
    assert (weight.numpy() == 0).sum(0).tolist() == [4] * 4


def test_groups_of_parameters_without_or_beyond_what_is_known():
    x = weft.nn.Parameter(weft.ones(2))
    for group in ({"params": [x], "lrr": 1}, {"lr": 1.0}):
        refused(
            weft.ArgumentError, "optim.params.group", lambda g=group: weft.optim.SGD([g], lr=0.1)
        )


def test_rates_of_three_phases():
    model = nn.Linear(1, 1)
    steps = weft.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    plan = weft.optim.lr_scheduler.OneCycleLR(
        steps, 1.0, total_steps=11, pct_start=0.4, three_phase=True, anneal_strategy="linear", div_factor=10, final_div_factor=10
    )  # fmt: skip
    rates = []
    for _ in range(11):
        rates.append(steps.param_groups[0]["lr"])
        steps.step()
        plan.step() if len(rates) < 11 else None
    top = 0.4 * 11 - 1
    want = np.interp(range(11), [0, top, 2 * top, 10], [0.1, 1.0, 0.1, 0.01])
    np.testing.assert_allclose(rates, want, rtol=1e-6)


@pytest.mark.parametrize("start", [0.5, 2.0])
def test_rates_begin_with_the_optimizers(start):
    steps = weft.optim.SGD([weft.nn.Parameter(weft.ones(2))], lr=start)
    plan = weft.optim.lr_scheduler.StepLR(steps, 2, 0.1)
    rates = []
    for _ in range(5):
        rates.append(steps.param_groups[0]["lr"])
        steps.step()
        plan.step()
    np.testing.assert_allclose(rates, start * np.array([1, 1, 0.1, 0.1, 0.01]), rtol=1e-6)
    assert plan.base_lrs == [start]


def test_a_forward_rule_makes_no_graph():
    seen = []

    @weft.custom_vjp
    def square(x):
        return x * x

    def forward(x):
        seen.append(weft.is_grad_enabled())
        return x * x, x

    square.defvjp(forward, lambda x, g: (2 * x * g,))
    x = weft.Tensor([3.0], requires_grad=True)
    square(x).backward()
    assert x.grad.tolist() == [6] and seen and not any(seen)


def test_examples_beside_each_other_are_normalised_alone():
    rng = np.random.default_rng(7)
    x = weft.asarray(rng.standard_normal((3, 4, 5)).astype("float32") + 4)
    got = weft.vmap(lambda x: F.layer_norm(x, (5,)))(x)
    np.testing.assert_allclose(got.numpy(), F.layer_norm(x, (5,)).numpy(), rtol=1e-4, atol=1e-5)
    for name in ("argmax", "argmin"):
        want = [getattr(np, name)(row) for row in x.numpy()]
        assert weft.vmap(lambda x, name=name: getattr(weft, name)(x))(x).tolist() == want
        kept = weft.vmap(lambda x, name=name: getattr(weft, name)(x, keepdims=True))(x)
        assert kept.shape == (3, 1, 1) and kept.numpy().ravel().tolist() == want


def test_losses_of_sequences_that_are_empty_or_full():
    rng = np.random.default_rng(3)
    logits = weft.asarray(rng.standard_normal((5, 3, 4)).astype("float32"))
    logs = (
        F.log_softmax(logits, axis=-1)
        if hasattr(F, "log_softmax")
        else weft.log_softmax(logits, axis=-1)
    )
    targets = weft.asarray([[1, 2], [3, 3], [2, 0]])
    alone = [
        float(F.ctc_loss(logs[:, i : i + 1], targets[i : i + 1, :n], (5,), (n,), reduction="sum"))
        for i, n in enumerate((2, 2, 1))
    ]
    together = F.ctc_loss(logs, targets, (5, 5, 5), (2, 2, 1), reduction="none")
    np.testing.assert_allclose(together.numpy(), alone, rtol=1e-5)
    mean = F.ctc_loss(logs, targets, (5, 5, 5), (2, 2, 1), reduction="mean")
    np.testing.assert_allclose(float(mean), np.mean(np.array(alone) / [2, 2, 1]), rtol=1e-5)
    t = weft.asarray([0.5, 3.0])
    full = F.poisson_nll_loss(weft.asarray([0.1, 0.2]), t, full=True, reduction="none").numpy()
    plain = F.poisson_nll_loss(weft.asarray([0.1, 0.2]), t, reduction="none").numpy()
    stirling = 3 * math.log(3) - 3 + 0.5 * math.log(2 * math.pi * 3)
    np.testing.assert_allclose(full - plain, [0, stirling], atol=1e-5)
    one = F.multilabel_margin_loss(weft.asarray([0.1, 0.2, 0.9]), weft.asarray([2, -1, 0]))
    many = F.multilabel_margin_loss(weft.asarray([[0.1, 0.2, 0.9]]), weft.asarray([[2, -1, 0]]))
    assert one.shape == () and float(one) == float(many)


def test_starts_follow_the_ways_in_and_out():
    weight = weft.nn.init.xavier_uniform_(weft.empty((30, 50)))
    most = math.sqrt(6 / 80)
    assert 0.9 * most < float(weft.max(weft.abs(weight))) <= most
    weight = weft.nn.init.kaiming_uniform_(weft.empty((30, 50)))  # 30 in
    assert 0.9 * math.sqrt(6 / 30) < float(weft.max(weft.abs(weight))) <= math.sqrt(6 / 30)


def test_numpys_functions_of_an_array_and_a_tensor_keep_gradients():
    x = weft.Tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = np.multiply(np.array([2.0, 3.0, 4.0], "float32"), x)
    weft.sum(y).backward()
    assert x.grad.tolist() == [2, 3, 4]


def test_gradients_come_back_to_the_device_and_stay_where_asked():
    x = weft.Tensor([1.0, 2.0], requires_grad=True)
    between = x * 3
    between.retain_grad()
    there = between.to("ref")
    assert there.device.name == "ref"
    weft.sum(there * there).backward()
    assert x.grad.device == x.device and x.grad.tolist() == [18, 36]
    assert between.grad.tolist() == [6, 12] and between.grad.device == x.device


def test_losses_of_no_labels_and_of_no_steps():
    rng = np.random.default_rng(5)
    logs = weft.log_softmax(weft.asarray(rng.standard_normal((4, 3, 3)).astype("float32")), axis=-1)
    targets = weft.asarray([[1, 2], [1, 1], [2, 1]])
    blank = -float(weft.sum(logs[:, 1, 0]))  # of no labels: the blank at each step
    each = F.ctc_loss(logs, targets, (0, 4, 4), (1, 0, 2), reduction="none", zero_infinity=True)
    last = F.ctc_loss(logs[:, 2:], targets[2:], (4,), (2,), reduction="none")
    np.testing.assert_allclose(each.numpy(), [0, blank, float(last[0])], rtol=1e-5)
    mean = F.ctc_loss(logs, targets, (0, 4, 4), (1, 0, 2), reduction="mean", zero_infinity=True)
    np.testing.assert_allclose(float(mean), (blank + float(last[0]) / 2) / 3, rtol=1e-5)


def test_notes_of_a_module():
    i, n = weft.te.placeholder((8,), "float32", name="A"), 8
    out = weft.te.compute((n,), lambda k: i[k] + 1.0, name="B")
    module = weft.build(weft.te.create_prim_func([i, out]), "c")
    assert isinstance(module.notes, list) and all(isinstance(note, str) for note in module.notes)


STEP = """
@T.prim_func
def main(X: T.Buffer((64,), "float32")):
    for b in T.serial(64):
        X[b] = X[b] + T.float32(1)
"""


def test_calls_that_are_profiled_are_made():
    module, x = weft.build(weft.script.from_source(STEP), "cpu"), weft.zeros((64,))
    with weft.profile() as profile:
        module(x)
    assert x.tolist() == [1.0] * 64 and "main" in [span[2] for span in profile.spans]


def test_numbers_of_timed_calls():
    main = weft.build(weft.script.from_source(STEP), "cpu")["main"]
    x = weft.zeros((64,))
    assert main.time(x, number=1, repeat=1).median > 0
    for counts in ({"number": 0}, {"repeat": 0}, {"number": -1}):
        refused(weft.ArgumentError, "call.time", main.time, x, **counts)


def test_validate_false_validates_nothing(monkeypatch):
    wanted = []
    build = weft._core.build

    def seen(*arguments, **options):
        wanted.append((arguments, options))
        return build(*arguments, **options)

    monkeypatch.setattr(weft._core, "build", seen)
    for validate in (False, 0, True, 1_000_000):
        weft.build(weft.script.from_source(STEP), "cpu", validate=validate)
    numbers = [[v for v in (*a, *o.values()) if type(v) is int] for a, o in wanted]
    assert numbers == [[0], [0], [1_000_000], [1_000_000]]


def test_methods_that_a_class_must_define():
    class Mine(weft.optim.Optimizer):
        pass

    class Function(weft.autograd.Function):
        pass

    said = refused(NotImplementedError, "python.abstract", Mine([weft.Tensor([1.0])]).step)
    assert "Mine defines no _update()" in str(said)
    said = refused(NotImplementedError, "python.abstract", Function.apply, weft.Tensor([1.0]))
    assert "defines no forward()" in str(said)


@pytest.mark.parametrize(
    "rows",
    [
        lambda x: F.layer_norm(x, (5,), eps=0.1),
        lambda x: weft.softmax(x, axis=-1),
        lambda x: weft.log_softmax(x, axis=-1),
    ],
    ids=["layer_norm", "softmax", "log_softmax"],
)
def test_gradients_of_compiled_gradients(rows):
    rng = np.random.default_rng(1)
    start, weights = rng.standard_normal((2, 3, 5))
    w = weft.asarray(weights)
    gradient = weft.grad(lambda x: weft.sum(rows(x) ** 3 * w))
    x = weft.Tensor(weft.asarray(start), requires_grad=True)
    weft.sum(weft.compile(lambda x: gradient(x))(x) * w).backward()
    step = 1e-5
    for place in np.ndindex(3, 5):
        moved = np.zeros((3, 5))
        moved[place] = step
        up, down = (
            (gradient(weft.Tensor(weft.asarray(start + m))).numpy() * weights).sum()
            for m in (moved, -moved)
        )
        assert abs((up - down) / (2 * step) - x.grad.numpy()[place]) < 1e-6
