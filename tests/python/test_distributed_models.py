# SPDX-License-Identifier: Apache-2.0
"""Habits of training programs with models over several ranks: exceptions that are caught, batches in parts, copies, compiled models, results of any kind, other
optimizers. Each beside one process with the whole batch."""

import textwrap

import pytest
from launchers import needs_mpi, program  # noqa: F401

pytestmark = needs_mpi

BEGIN = """
from weft import nn, optim
import copy, dataclasses, types
import numpy as np
dist.init()
r, n = dist.rank(), dist.size()

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.third = nn.Linear(5, 7), nn.Linear(7, 7), nn.Linear(7, 2)

    def forward(self, x):
        return self.third(self.second(self.first(x).relu()).relu())

def made(model=Model):
    weft.random.seed(3)
    return model()

kinds = {
    "data parallel": lambda m: dist.DataParallel(m, bucket_bytes=100),
    **{f"stage {s}": lambda m, s=s: dist.ShardedParallel(m, stage=s, resident_bytes=0) for s in (1, 2, 3)},
}
own, every = slice(4 * r, 4 * r + 4), slice(None)

def batch(rows, number=0):
    return np.random.default_rng(number).standard_normal((4 * n, 5)).astype("float32")[rows]

def loss_of(model, x):
    return ((model(weft.Tensor(x, requires_grad=False)) + 1) ** 2).mean()

def numbers(model):
    return {name: x.numpy() for name, x in model.state_dict().items()}

def same(got, want, what):
    assert set(got) == set(want), (what, set(got) ^ set(want))
    for name in want:
        np.testing.assert_allclose(got[name], want[name], rtol=1e-4, atol=1e-6, err_msg=f"{what}: {name}")

def trained(wrap, rows, steps, make=optim.SGD, lr=0.2, model=Model):
    \"\"\"The numbers after `steps` of step(model, rows of the batch), which calls backward.\"\"\"
    it = wrap(made(model))
    optimizer = make(it.parameters(), lr=lr)
    for number in range(3):
        steps(it, batch(rows, number))
        optimizer.step()
        optimizer.zero_grad()
    return it

def compare(steps, **more):
    want = numbers(trained(lambda m: m, every, steps, **more))
    for name, wrap in kinds.items():
        same(numbers(trained(wrap, own, steps, **more)), want, name)
"""


def passes(jobs, program, ranks, text):  # noqa: F811
    path = program(BEGIN + textwrap.dedent(text) + '\nprint("ok", r, flush=True)\n')
    status, out = jobs("mpirun", ranks, path)
    assert status == 0 and out.count("ok") == ranks, out


def test_a_pass_that_an_exception_ends_is_forgotten(jobs, program):  # noqa: F811
    passes(
        jobs,
        program,
        2,
        """
        class Stop(Exception):
            pass
        def stop(g):
            raise Stop
        def caught(call):
            try:
                call()
            except Stop:
                return
            raise SystemExit("nothing was raised")
        def steps(model, x):
            inner = model.module if hasattr(model, "module") else model
            def half_a_pass():
                y = weft.Tensor(x, requires_grad=True) * 1.0
                y.register_hook(stop)
                ((model(y) - 5) ** 2).mean().backward()
            def half_a_forward(*args):
                raise Stop
            caught(half_a_pass)
            model.zero_grad()
            inner.third.forward = half_a_forward
            caught(lambda: loss_of(model, x))
            del inner.third.forward
            loss_of(model, x).backward()
        compare(steps)
        """,
    )


def test_batches_in_parts(jobs, program):  # noqa: F811
    """no_sync() of every wrapper: the sums of the parts are exchanged once."""
    passes(
        jobs,
        program,
        3,
        """
        def steps(model, x):
            half = len(x) // 2
            if isinstance(model, Model):  # one process
                loss_of(model, x[:half]).backward()
            else:
                with model.no_sync():
                    loss_of(model, x[:half]).backward()
                assert all(p.grad is None for p in getattr(model, "pieces", ()))
            loss_of(model, x[half:]).backward()
        compare(steps)
        """,
    )


def test_copies_train_by_themselves(jobs, program):  # noqa: F811
    """deepcopy, averages of weights, and copies on one rank alone, where no collective may wait for the others."""
    passes(
        jobs,
        program,
        2,
        """
        from weft.optim import swa_utils
        def plain(model, x):
            loss_of(model, x).backward()
        for name, wrap in {"one process": lambda m: m, **kinds}.items():
            rows = every if name == "one process" else own
            model = trained(wrap, rows, plain)
            averaged = swa_utils.AveragedModel(model)
            other = copy.deepcopy(model)
            if r == 0:
                copy.deepcopy(model)
            optimizer = optim.SGD(other.parameters(), lr=0.5)
            plain(other, batch(rows, 7))
            optimizer.step()
            averaged.update_parameters(model)
            averaged.update_parameters(other)
            found = [numbers(m) for m in (model, other, averaged.module)]
            with weft.no_grad():
                found.append({"result": averaged(weft.Tensor(batch(every, 1), requires_grad=False)).numpy()})
            if name == "one process":
                want = found
            for got, expected in zip(found, want):
                same(got, expected, name)
        """,
    )


def test_compiled_models_and_frozen_parameters(jobs, program):  # noqa: F811
    passes(
        jobs,
        program,
        2,
        """
        def plain(model, x):
            loss_of(model, x).backward()
        want = numbers(trained(lambda m: m, every, plain))
        model = trained(lambda m: dist.DataParallel(weft.compile(m)), own, plain)
        same(numbers(model), want, "compiled")
        for wrong, code in ((weft.compile(made()), "compile.trace.unsupported"), (lambda x: x, "distributed.model")):
            try:
                dist.ShardedParallel(wrong)
                raise SystemExit(code)
            except weft.Error as problem:
                assert problem.code == code, problem
        model = dist.DataParallel(made())
        model.module.second.requires_grad_(False)  # after it was wrapped
        plain(model, batch(own))
        assert model.module.second.weight.grad is None and model.module.first.weight.grad is not None
        parts = nn.Sequential(dist.ColumnParallelLinear(nn.Linear(5, 2 * n)))
        for wrong, code in ((parts, "distributed.parted"), (nn.Sequential(nn.LazyLinear(3)), "distributed.lazy")):
            for wrap in kinds.values():
                try:
                    wrap(wrong)
                    raise SystemExit(code)
                except weft.ArgumentError as problem:
                    assert problem.code == code, problem
        for layer in (dist.ColumnParallelLinear, dist.RowParallelLinear, dist.ParallelEmbedding, dist.SyncBatchNorm):
            try:
                layer(nn.Conv2d(2, 2, 1))
                raise SystemExit("a layer of another kind")
            except weft.DTypeError as problem:
                assert problem.code == "distributed.layer", problem
        frozen = nn.Linear(5, 2 * n)
        frozen.requires_grad_(False)
        assert not any(p.requires_grad for p in dist.ColumnParallelLinear(frozen).parameters())
        table = nn.Embedding(2 * n, 3, padding_idx=-1)
        rows = dist.ParallelEmbedding(table)
        rows(weft.arange(2 * n)).sum().backward()
        want = np.ones((2 * n, 3), "float32")
        want[-1] = 0
        assert np.array_equal(rows.weight.grad.numpy(), want[2 * r : 2 * r + 2])
        """,
    )


def test_layers_that_read_others_parameters(jobs, program):  # noqa: F811
    """Recurrent layers read their cells' weights, and a hook computes a weight before its module runs: with stage 3 both find them there."""
    passes(
        jobs,
        program,
        2,
        """
        class Recurrent(nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = nn.LSTM(5, 4, num_layers=2)
                self.last = nn.utils.weight_norm(nn.Linear(4, 2))
            def forward(self, x):
                return self.last(self.inner(x.reshape((1, *x.shape)))[0][0])
        compare(lambda model, x: loss_of(model, x).backward(), model=Recurrent)
        """,
    )


def test_results_of_any_kind(jobs, program):  # noqa: F811
    """With stage 3 a module's parameters come back when the gradient of anything that it gave begins."""
    passes(
        jobs,
        program,
        2,
        """
        import collections
        @dataclasses.dataclass(frozen=True)
        class Result:
            y: object
            rest: object = None
        class Ordered(collections.OrderedDict):
            pass
        ways = {
            "dataclass": (lambda y: Result(y, [y * 2]), lambda o: o.y + o.rest[0]),
            "namespace": (lambda y: types.SimpleNamespace(y=y, name="x"), lambda o: o.y),
            "dict": (lambda y: Ordered(y=y), lambda o: o["y"] if type(o) is Ordered else None),
            "nested": (lambda y: ({"a": (y, 3)}, None), lambda o: o[0]["a"][0]),
        }
        for name, (give, take) in ways.items():
            class Inner(nn.Linear):
                def forward(self, x):
                    return give(super().forward(x))
            class Outer(Model):
                def __init__(self):
                    super().__init__()
                    self.second = Inner(7, 7)
                def forward(self, x):
                    return self.third(take(self.second(self.first(x).relu())))
            compare(lambda model, x: loss_of(model, x).backward(), model=Outer)
        """,
    )


def test_optimizers_that_look_at_all_parameters(jobs, program):  # noqa: F811
    """L-BFGS takes products of rows over all pieces, and all ranks make equally many steps."""
    passes(
        jobs,
        program,
        2,
        """
        for search in (None, "strong_wolfe"):
            found = []
            for wrap in (lambda m: m, kinds["stage 1"], kinds["stage 3"]):
                model = wrap(made())
                x = batch(own if found else every)
                optimizer = optim.LBFGS(model.parameters(), lr=0.5, max_iter=4, line_search_fn=search)
                def closure():
                    optimizer.zero_grad()
                    loss = loss_of(model, x)
                    loss.backward()
                    return loss
                optimizer.step(closure)
                found.append(float(optimizer.step(closure)))
            np.testing.assert_allclose(found, found[0], rtol=1e-3)
        """,
    )


def test_checkpoints_hold_all_that_an_optimizer_counts(jobs, program, tmp_path):  # noqa: F811
    """A run that goes on from a checkpoint, in a new model or in one that has gone further, ends with the same bits."""
    passes(
        jobs,
        program,
        2,
        f"""
        folder = {str(tmp_path)!r}
        class Kept(Model):
            def __init__(self):
                super().__init__()
                self.register_buffer("scale", weft.ones((2,)), persistent=False)
                self.norm = nn.BatchNorm1d(2)
            def forward(self, x):
                return self.norm(super().forward(x)) * self.scale
        def steps(model, optimizer, which):
            for number in which:
                loss_of(model, batch(own, number)).backward()
                optimizer.step()
                optimizer.zero_grad()
            return numbers(model)
        for make in (optim.NAdam, optim.RAdam, optim.ASGD, optim.Rprop, optim.Adagrad):
            for stage in (1, 3):
                wrap = kinds[f"stage {{stage}}"]
                model = wrap(made(Kept))
                assert set(model.state_dict()) == set(made(Kept).state_dict())
                optimizer = make(model.parameters())
                model.save(folder + "/none", optimizer)
                steps(model, optimizer, range(3))
                model.save(folder + "/three", optimizer, 3)
                want = steps(model, optimizer, range(3, 6))
                model.load(folder + "/three", optimizer)
                again = steps(model, optimizer, range(3, 6))
                other = wrap(made(Kept))
                fresh = make(other.parameters())
                assert other.load(folder + "/three", fresh) == 3
                got = steps(other, fresh, range(3, 6))
                for name in want:
                    kept = r == 0 or "running" not in name  # statistics are rank 0's
                    assert not kept or np.array_equal(again[name], want[name]), (make, stage, name)
                    assert not kept or np.array_equal(got[name], want[name]), (make, stage, name)
                first = steps(wrap(made(Kept)), make(model.parameters()), ())
                model.load(folder + "/none", optimizer)
                assert not optimizer._steps, "what was counted since"
        """,
    )


def test_sharded_arrays_beside_numbers(jobs, program):  # noqa: F811
    """Whole numbers times a fraction are fractions, as on one device; other ranks' pieces are not moved away."""
    passes(
        jobs,
        program,
        2,
        """
        mesh = dist.Mesh((n,))
        whole = np.arange(4 * n, dtype="int32")
        for place in (dist.Shard(0), dist.Replicate()):
            x = dist.shard(weft.asarray(whole), mesh, [place])
            for got, want in (
                (x * 0.5, whole * 0.5), (x + 0.25, whole + 0.25), (1.5 - x, 1.5 - whole), (x / 2, whole / 2), (x * 3, whole * 3),
                (x + np.full(4 * n, 0.5), whole + 0.5),
            ):
                full = got.full()
                assert np.array_equal(full.numpy().astype("float64"), want), (place, full, want)
            assert (x * 3).dtype == weft.int32
        model = kinds["stage 3"](made())
        assert model.to("cpu") is model and model.float() is model
        try:
            model.half()
            raise SystemExit("halves of some ranks")
        except weft.ArgumentError as problem:
            assert problem.code == "distributed.moved", problem
        """,
    )
