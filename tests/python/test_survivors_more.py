# SPDX-License-Identifier: Apache-2.0
"""What random one-line faults (tools/mutate) once survived, component by component."""

import copy
import math
import os

import numpy as np
import pytest
import weft
from weft import script as T

nn, F = weft.nn, weft.nn.functional


def tensor(a, **options):
    return weft.Tensor(
        weft.asarray(np.asarray(a, np.float32)), **{"requires_grad": False, **options}
    )


# ---- random numbers and initialisation


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_draws_do_not_overlap(dtype, count):
    weft.random.seed(3)
    for draw in (weft.random.normal, weft.random.uniform):
        seen = np.concatenate([draw((count,), dtype=dtype).numpy() for _ in range(60)])
        assert len(set(seen.tolist())) == seen.size


def test_initialisers():
    made = {
        "rand": weft.init.rand(3, 4),
        "randn": weft.init.randn(3, 4),
        "constant": weft.init.constant(3, 4, c=2.0),
        "ones": weft.init.ones(3, 4),
        "zeros": weft.init.zeros(3, 4),
        "xavier_uniform": weft.init.xavier_uniform(3, 4),
        "xavier_normal": weft.init.xavier_normal(3, 4),
        "kaiming_uniform": weft.init.kaiming_uniform(3, 4),
        "kaiming_normal": weft.init.kaiming_normal(3, 4),
    }
    for name, x in made.items():
        assert tuple(x.shape) == (3, 4) and not x.requires_grad, name
    assert weft.init.randn(2, requires_grad=True).requires_grad
    for name in ("xavier_uniform", "xavier_normal", "kaiming_uniform", "kaiming_normal"):
        assert tuple(getattr(weft.init, name)(3, 4, shape=(5, 6)).shape) == (5, 6), name


@pytest.mark.parametrize(
    ("name", "variance"),
    [("xavier_normal", 2 / 500), ("kaiming_normal", 2 / 200), ("xavier_uniform", 2 / 500), ("kaiming_uniform", 2 / 200)],
)  # fmt: skip
def test_variances_of_initialisers(name, variance):
    weft.random.seed(1)
    x = getattr(weft.init, name)(200, 300).numpy()
    assert abs(x.mean()) < 4 * math.sqrt(variance / x.size)
    assert x.var() == pytest.approx(variance, rel=0.05)


def test_gains():
    assert weft.init.calculate_gain("leaky_relu") == pytest.approx(math.sqrt(2 / 1.0001))
    assert weft.init.calculate_gain("leaky_relu", 2.0) == pytest.approx(math.sqrt(2 / 5))
    assert weft.init.calculate_gain("relu") == pytest.approx(math.sqrt(2))
    assert weft.init.calculate_gain("tanh") == pytest.approx(5 / 3)


# ---- layers and losses


def test_smoothed_probabilities():
    logits, labels = np.array([[1.0, 2.0, -1.0]], np.float32), np.array([[0.7, 0.2, 0.1]], np.float32)  # fmt: skip
    log_p = logits - np.log(np.exp(logits).sum())
    for smoothing in (0.0, 0.1, 0.6):
        want = -((labels * (1 - smoothing) + smoothing / 3) * log_p).sum()
        got = F.cross_entropy(tensor(logits), tensor(labels), label_smoothing=smoothing)
        assert got.item() == pytest.approx(want, rel=1e-5)


def test_channels_are_dropped_whole():
    weft.random.seed(2)
    x = tensor(np.ones((4, 64, 5, 5)))
    whole = F.feature_alpha_dropout(x, 0.5, training=True).numpy()
    spread = whole.reshape(4 * 64, 25)
    assert (spread == spread[:, :1]).all() and len(np.unique(spread)) == 2
    single = F.alpha_dropout(x, 0.5, training=True).numpy().reshape(4 * 64, 25)
    assert (single != single[:, :1]).any()
    for f in (F.alpha_dropout, F.feature_alpha_dropout):
        assert np.array_equal(f(x).numpy(), x.numpy())  # training=False, as in PyTorch


def test_weights_of_heads_are_averaged_unless_asked():
    weft.random.seed(1)
    layer, x = nn.MultiheadAttention(8, 2), tensor(np.random.default_rng(1).random((5, 3, 8)))
    mean, each = layer(x, x, x)[1], layer(x, x, x, average_attn_weights=False)[1]
    assert tuple(mean.shape) == (3, 5, 5) and tuple(each.shape) == (3, 2, 5, 5)
    np.testing.assert_allclose(mean.numpy(), each.numpy().mean(1), rtol=1e-5)


def test_triplets_are_not_swapped_unless_asked():
    a, p, n = tensor([[0.0, 0.0]]), tensor([[3.0, 0.0]]), tensor([[4.0, 0.0]])
    # Distances: anchor to positive 3, to negative 4, positive to negative 1.
    assert nn.TripletMarginWithDistanceLoss()(a, p, n).item() == pytest.approx(0.0, abs=1e-4)
    swapped = nn.TripletMarginWithDistanceLoss(swap=True)(a, p, n)
    assert swapped.item() == pytest.approx(3.0, rel=1e-4)


# ---- optimizers and schedules


def test_a_state_is_copied_on_the_way_in():
    def made():
        w = weft.Tensor(weft.ones((3,)), requires_grad=True)
        return w, weft.optim.Adam([w], lr=0.1)

    def step(w, optimizer):
        optimizer.zero_grad()
        (w * w).sum().backward()
        optimizer.step()

    first, optimizer = made()
    step(first, optimizer)
    state = optimizer.state_dict()
    kept = copy.deepcopy({k: v for k, v in state.items() if isinstance(v, dict)})
    second, other = made()
    other.load_state_dict(state)
    step(second, other)
    for name, rows in kept.items():
        for i, value in rows.items():
            now = state[name][i]
            assert np.array_equal(np.asarray(now), np.asarray(value)), (name, i)


@pytest.mark.parametrize("given", [{}, {"epochs": 3}, {"steps_per_epoch": 4}])
def test_one_cycle_needs_its_number_of_steps(given):
    w = weft.Tensor(weft.ones((3,)), requires_grad=True)
    with pytest.raises(weft.ArgumentError) as caught:
        weft.optim.lr_scheduler.OneCycleLR(weft.optim.SGD([w], lr=0.1), 1.0, **given)
    assert caught.value.code == "optim.scheduler.steps"


# ---- transforms


def test_batched_indices_below_zero():
    x = np.arange(12.0, dtype=np.float32).reshape(3, 4)
    i = np.array([-1, 0, -4], np.int64)
    got = weft.vmap(lambda row, at: weft.take(row, weft.reshape(at, (1,)), axis=0))(
        weft.asarray(x), weft.asarray(i)
    )
    assert got.numpy()[:, 0].tolist() == [3.0, 4.0, 8.0]


def test_batched_indices_beside_slices():
    x = np.arange(24.0, dtype=np.float32).reshape(2, 4, 3)
    i = np.array([[2, 0], [1, 3]], np.int64)
    for rest in ((), (slice(None),), (slice(0, 2),), (1,)):
        got = weft.vmap(lambda a, at: a[(at, *rest)])(weft.asarray(x), weft.asarray(i))  # noqa: B023
        want = np.stack([a[(at, *rest)] for a, at in zip(x, i)])
        assert np.array_equal(got.numpy(), want), rest


# ---- methods


def test_in_place_steps_with_a_factor():
    x, y = np.array([1.0, 2.0, 4.0], np.float32), np.array([3.0, 5.0, 7.0], np.float32)
    for make in (weft.asarray, tensor):
        for alpha in (1, 2, -3):
            a = make(x.copy())
            a.add_(make(y), alpha=alpha)
            assert a.numpy().tolist() == (x + alpha * y).tolist()
            a = make(x.copy())
            a.sub_(make(y), alpha=alpha)
            assert a.numpy().tolist() == (x - alpha * y).tolist()


def test_flips_of_tensors():
    a = np.arange(24.0, dtype=np.float32).reshape(2, 3, 4)
    x = tensor(a)
    for axes in ((0,), (0, 2), (-1,)):
        for got in (x.flip(*axes), x.flip(axes), x.flip(list(axes)), x.flip(dims=axes)):
            assert np.array_equal(got.numpy(), np.flip(a, axes))


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_index_add_along_each_axis(dim):
    a, index = np.zeros((3, 4), np.float32), np.array([2, 0, 2])
    shape = list(a.shape)
    shape[dim] = 3
    source = np.arange(1.0, 1 + math.prod(shape), dtype=np.float32).reshape(shape)
    want = a.copy()
    np.add.at(np.moveaxis(want, dim, 0), index, np.moveaxis(source, dim, 0) * 2)
    got = tensor(a).index_add(dim, weft.asarray(index), tensor(source), alpha=2)
    assert np.array_equal(got.numpy(), want)


# ---- programs


@T.prim_func
def one(A: T.Buffer((4,), "float32")):
    for i in range(4):
        with T.block("A"):
            v = T.axis.spatial(4, i)
            A[v] = T.float32(1)


def test_programs_are_equal_to_themselves():
    again = T.from_source(one.script())
    assert one == one and not one != one  # noqa: PLR0124
    assert one != 3 and not one == "x"
    assert again.script() == one.script()


def test_errors_count_lines_from_the_first():
    with pytest.raises(weft.ParseError) as caught:
        T.from_source(
            "@T.prim_func\ndef main(A: T.Buffer((4,), 'float32')):\n    A[nothing] = T.float32(1)\n"
        )
    assert ":3:" in str(caught.value)


# ---- files


def test_archives_at_their_limit(tmp_path):
    a = np.arange(10, dtype=np.float32)
    weft.savez(tmp_path / "a.npz", a=weft.asarray(a))
    import zipfile

    with zipfile.ZipFile(tmp_path / "a.npz") as archive:
        size = sum(entry.file_size for entry in archive.infolist())
    assert np.array_equal(weft.load_arrays(tmp_path / "a.npz", limit=size)["a"].numpy(), a)
    with pytest.raises(weft.IOError) as caught:
        weft.load_arrays(tmp_path / "a.npz", limit=size - 1)
    assert caught.value.code == "io.npz.limit"


# ---- pictures and layouts of machines


@pytest.mark.targets("vta")
def test_timelines_are_documents():
    from xml.etree import ElementTree

    from weft import vta_picture

    spans = [("load", "LOAD inp", 10, 5), ("compute", "GEMM", 15, 20), ("store", "STORE", 35, 5)]
    root = ElementTree.fromstring(vta_picture.timeline(spans, "a < b"))
    texts = [e.text for e in root.iter() if e.tag.endswith("text")]
    assert "a < b: 30 cycles" in texts
    assert [t for t in texts if t in ("load", "compute", "store")][:3] == [
        "load",
        "compute",
        "store",
    ]
    bars = [e for e in root.iter() if e.tag.endswith("rect") and len(e)]
    assert len(bars) == 3


@pytest.mark.parametrize("dtype", ["complex64", "complex128", "float32", "int16"])
def test_npy_files_of_the_other_byte_order(dtype, tmp_path):
    x = (np.arange(1, 7) * 1.5).astype(dtype) * (1 - 2j if dtype[0] == "c" else 1)
    x = x.astype(dtype).reshape(2, 3)
    np.save(tmp_path / "x.npy", x.astype(x.dtype.newbyteorder(">")))
    found = weft.load_arrays(tmp_path / "x.npy")
    assert found.dtype.name == dtype
    np.testing.assert_array_equal(found.numpy(), x)


@pytest.mark.parametrize("save", [weft.save, lambda p, x: weft.save_safetensors(p, {"x": x})])
def test_a_file_that_cannot_take_its_name_leaves_nothing(save, tmp_path):
    (tmp_path / "taken").mkdir()
    descriptors = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        with pytest.raises(weft.IOError):
            save(tmp_path / "taken", weft.ones((3,)))
    save(tmp_path / "whole", weft.ones((3,)))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["taken", "whole"]
    assert len(os.listdir("/proc/self/fd")) == descriptors


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_losses_with_margins_by_their_formulas(reduction):
    rng = np.random.default_rng(3)
    x, y = rng.standard_normal((2, 6, 4)).astype("float32")
    sign = np.array([1, -1, 1, -1, -1, 1], "float32")
    cos = (x * y).sum(1) / np.linalg.norm(x, axis=1) / np.linalg.norm(y, axis=1)
    reduce = {"mean": np.mean, "sum": np.sum, "none": lambda v: v}[reduction]
    n = weft.nn.functional

    def check(found, wanted):
        np.testing.assert_allclose(found.numpy(), reduce(wanted), rtol=2e-5, atol=1e-6)

    a, b, s = weft.Tensor(x), weft.Tensor(y), weft.asarray(sign)
    check(
        n.cosine_embedding_loss(a, b, s, margin=0.3, reduction=reduction),
        np.where(sign == 1, 1 - cos, np.maximum(cos - 0.3, 0)),
    )
    check(
        n.margin_ranking_loss(a[:, 0], b[:, 0], s, margin=0.2, reduction=reduction),
        np.maximum(-sign * (x[:, 0] - y[:, 0]) + 0.2, 0),
    )
    check(
        n.hinge_embedding_loss(a[:, 0], s, margin=0.7, reduction=reduction),
        np.where(sign == 1, x[:, 0], np.maximum(0.7 - x[:, 0], 0)),
    )
    big = np.array([200, -200, 3, -3, 0.5, -0.5], "float32")
    check(
        n.soft_margin_loss(weft.Tensor(big), s, reduction=reduction),
        np.logaddexp(0, -(sign * big).astype("float64")),
    )
    labels = np.array([0, 3, 1, 2, 2, 0])
    own = np.take_along_axis(x, labels[:, None], 1)
    for p in (1, 2):
        z = np.maximum(x - own + 0.5, 0) ** p
        z[np.arange(6), labels] = 0
        check(
            n.multi_margin_loss(a, weft.asarray(labels), p=p, margin=0.5, reduction=reduction),
            z.sum(1) / 4,
        )


@pytest.mark.parametrize("offset", [-4, -2, -1, 0, 1, 3, 5])
def test_diagonals_of_tensors(offset):
    x = np.arange(24, dtype="float32").reshape(2, 3, 4)
    t = weft.Tensor(x, requires_grad=True)
    wanted = np.diagonal(x, offset, 1, 2)
    found = weft.linalg.diagonal(t, offset=offset)
    np.testing.assert_array_equal(found.numpy(), wanted)
    found.sum().backward()
    ones = np.eye(3, 4, k=offset, dtype="float32")
    grad = np.zeros((2, 3, 4), "float32") if t.grad is None else t.grad.numpy()
    np.testing.assert_array_equal(grad, np.broadcast_to(ones, (2, 3, 4)))


def test_the_gradient_of_a_determinant_is_its_cofactors():
    x = np.random.default_rng(4).standard_normal((2, 3, 3))
    t = weft.Tensor(weft.asarray(x), requires_grad=True)
    weft.linalg.det(t).sum().backward()
    cofactors = np.linalg.det(x)[:, None, None] * np.swapaxes(np.linalg.inv(x), -1, -2)
    np.testing.assert_allclose(t.grad.numpy(), cofactors, rtol=1e-9)


def test_a_time_that_is_no_number_is_no_row(tmp_path):
    from weft.tuning.database import Database, Trial

    base = Database(tmp_path / "tune.db")
    base.add("w", "cpu", 1, Trial({"knobs": {}}, 1.0))
    row = list(base.rows()[0])
    for seconds in (math.inf, -math.inf, -1.0):
        base._file.execute("update trials set seconds=?", (seconds,))
        with pytest.raises(weft.IOError) as caught:
            base.rows()
        assert caught.value.code == "tune.database.damaged" and "seconds" in str(caught.value)
    base._file.execute("update trials set seconds=?", (row[4],))
    assert [list(r) for r in base.rows()] == [row]
    base.close()


def test_batches_of_a_data_set():
    data = weft.data.ArrayDataset(weft.arange(10), weft.arange(10) * 2)
    sizes = [
        [b[0].shape[0] for b in weft.data.DataLoader(data, 4, drop_last=d)] for d in (False, True)
    ]
    assert sizes == [[4, 4, 2], [4, 4]]
    assert [len(weft.data.DataLoader(data, 4, drop_last=d)) for d in (False, True)] == [3, 2]

    def passes(seed):
        loader = weft.data.DataLoader(data, 3, shuffle=True, key=weft.random.Key(seed))
        out = []
        for _ in range(2):
            pairs = [(b[0].numpy(), b[1].numpy()) for b in loader]
            x, y = (np.concatenate(p) for p in zip(*pairs, strict=True))
            assert sorted(x) == list(range(10)) and (y == 2 * x).all()
            out.append(x.tolist())
        return out

    first = passes(3)
    assert first[0] != first[1] and first == passes(3) and first != passes(4)
    assert [b[0].tolist() for b in weft.data.DataLoader(data, 5)] == [[*range(5)], [*range(5, 10)]]


@pytest.mark.parametrize("n", [1, 2, 3])
def test_channels_are_dropped_whole(n):
    """Of (n, c, ...) and of (c, ...): a channel is 0 or scaled, and the channels of one example are not those of another."""
    f = getattr(F, f"dropout{n}d")
    weft.random.seed(n)
    spatial = (3, 4, 5)[:n]
    for shape in ((40, 6, *spatial), (240, *spatial)):
        x = weft.Tensor(weft.ones(shape), requires_grad=False)
        found = f(x, 0.25).numpy().reshape(240, -1)
        assert set(np.unique(found)) == {np.float32(0), np.float32(4 / 3)}
        assert (found == found[:, :1]).all()
        assert 20 < (found[:, 0] == 0).sum() < 110
        rows = found[:, 0].reshape(40, 6)
        assert len({tuple(r) for r in rows}) > 4
    for ndim in {1, 2, 3, 4, 5, 6} - {n + 1, n + 2}:
        with pytest.raises(weft.ShapeError) as caught:
            f(weft.Tensor(weft.ones((2,) * ndim), requires_grad=False), 0.5)
        assert caught.value.code == "nn.dropout.shape"
