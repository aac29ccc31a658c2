# SPDX-License-Identifier: Apache-2.0
"""What ranks share out, in jobs of two and three ranks: groups in any order, norms, states and checkpoints of models in pieces."""

import pytest
from launchers import needs_mpi, needs_torchrun, program  # noqa: F401

under = pytest.mark.parametrize(
    "launcher",
    [pytest.param("mpirun", marks=needs_mpi), pytest.param("torchrun", marks=needs_torchrun)],
)


def passes(jobs, ranks, path, *arguments, launcher="mpirun"):
    status, text = jobs(launcher, ranks, path, *arguments)
    assert status == 0 and text.count("ok") == ranks, text


@under
def test_groups_keep_the_order_of_their_ranks(program, jobs, launcher):  # noqa: F811
    """Every collective of a group whose ranks are named in another order than the job's."""
    path = program("""
        dist.init()
        r = dist.rank()
        for ranks in ([2, 0, 1], [1, 0], [2, 1], [0, 2, 1]):
            group = dist.new_group(ranks)
            if r not in ranks:
                assert dist.rank(group) == -1 and dist.size(group) == len(ranks)
                continue
            assert dist.rank(group) == ranks.index(r)
            x = weft.full((1,), float(r))
            assert dist.all_gather(x, group).tolist() == ranks
            assert dist.broadcast(x, 0, group).tolist() == ranks[:1]
            every = weft.arange(len(ranks), dtype="float32") + 10 * r
            assert dist.all_to_all(every, group).tolist() == [10 * o + ranks.index(r) for o in ranks]
            total = sum(10 * o + ranks.index(r) for o in ranks)
            assert dist.reduce_scatter(every, group=group).tolist() == [total]
        print("ok", r)
    """)
    passes(jobs, 3, path, launcher=launcher)


@under
def test_bytes_of_floats_and_numbers(program, jobs, launcher):  # noqa: F811
    """Floats of 8 bits are rounded once; what has no axis 0 is not cut; a group's ranks are whole numbers."""
    path = program("""
        dist.init()
        r = dist.rank()
        for kind in (weft.float8_e4m3fn, weft.float8_e5m2):
            x = weft.asarray([1.5, -2.0, 0.25]).astype(kind)
            for op, want in (("sum", [4.5, -6, 0.75]), ("mean", [1.5, -2, 0.25]), ("max", [1.5, -2, 0.25]), ("prod", [3.375, -8, 0.015625])):
                got = dist.all_reduce(x, op)
                assert got.dtype == kind
                assert got.tolist() == weft.asarray(want).astype("float32").astype(kind).tolist()
        number = weft.ones(())
        for call in (dist.all_to_all, dist.reduce_scatter):
            try:
                call(number)
                raise SystemExit(f"{call} took a number")
            except weft.ShapeError as problem:
                assert problem.code == "distributed.extent", problem
        try:
            dist.new_group([0.5])
            raise SystemExit("half a rank")
        except weft.ArgumentError as problem:
            assert problem.code == "distributed.group", problem
        print("ok", r)
    """)
    passes(jobs, 3, path, launcher=launcher)


MODEL = """
from weft import nn, optim
import numpy as np, sys, tempfile
dist.init()
r, n = dist.rank(), dist.size()

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.third = nn.Linear(5, 7), nn.Linear(7, 7), nn.Linear(7, 7)
        self.third.weight = self.second.weight
        self.scale = nn.Parameter(weft.ones(()))

    def forward(self, x):
        return self.third(self.second(self.first(x)).relu()) * self.scale

def made():
    weft.random.seed(3)
    return Model()

def backward(model, rows, number=0):
    x = np.random.default_rng(number).standard_normal((2 * n, 5)).astype("float32")
    ((model(weft.Tensor(x[rows], requires_grad=False)) + 1) ** 2).mean().backward()

own, every = slice(2 * r, 2 * r + 2), slice(None)

def numbers(model):
    return {name: x.numpy() for name, x in model.state_dict().items()}

def same(got, want):
    assert set(got) == set(want), set(got) ^ set(want)
    for name in want:
        assert got[name].shape == want[name].shape
        np.testing.assert_allclose(got[name], want[name], rtol=1e-4, atol=1e-6, err_msg=name)
"""


def model_program(program, text):  # noqa: F811
    import textwrap

    return program(MODEL + textwrap.dedent(text))


@needs_mpi
@pytest.mark.parametrize("stage", [1, 2, 3])
def test_pieces_have_the_norm_of_the_whole(program, jobs, stage):  # noqa: F811
    """Gradients in pieces are clipped by the norm of all of them; a number and a weight that two layers share are there too."""
    path = model_program(
        program,
        f"""
        for kind in (2.0, 1.0, float("inf")):
            alone, model = made(), dist.ShardedParallel(made(), stage={stage}, resident_bytes=0)
            backward(alone, every)
            backward(model, own)
            want = nn.utils.clip_grad_norm_(alone.parameters(), 0.1, kind)
            assert abs(nn.utils.clip_grad_norm_(model.parameters(), 0.1, kind) - want) < 1e-4 * want
            optim.SGD(alone.parameters(), lr=0.5).step()
            optim.SGD(model.parameters(), lr=0.5).step()
            same(numbers(model), numbers(alone))
        other = dist.ShardedParallel(Model(), stage={stage}, resident_bytes=0)
        other.load_state_dict(model.state_dict())
        same(numbers(other), numbers(alone))
        try:
            other.load_state_dict({{"first.weight": weft.ones((2, 2))}})
            raise SystemExit("a state of other names")
        except weft.ArgumentError as problem:
            assert problem.code == "nn.state.names"
        same(numbers(other), numbers(alone))
        print("ok", r)
    """,
    )
    passes(jobs, 3, path)


@needs_mpi
def test_parallel_layers_have_the_norm_of_the_whole(program, jobs):  # noqa: F811
    path = model_program(
        program,
        """
        def layers():
            weft.random.seed(5)
            return nn.Embedding(6, 4), nn.Linear(4, 6), nn.Linear(6, 3)
        def total(table, wide, narrow):
            index = weft.asarray([0, 5, 3])
            (narrow(wide(table(index)).relu()) ** 2).sum().backward()
            params = [p for layer in (table, wide, narrow) for p in layer.parameters()]
            return nn.utils.clip_grad_norm_(params, 0.01), params[-1].grad.numpy()
        table, wide, narrow = layers()
        parts = dist.ParallelEmbedding(table), dist.ColumnParallelLinear(wide), dist.RowParallelLinear(narrow)
        want, bias = total(*layers())
        got, own = total(*parts)
        assert abs(got - want) < 1e-4 * want, (got, want)
        np.testing.assert_allclose(own, bias, rtol=1e-4)
        assert parts[0](weft.zeros((0,), dtype="int64")).shape == (0, 4)
        def refused(layer, *rest):
            try:
                dist.ParallelAttention(layer, *rest, heads=4 * n)
                raise SystemExit("attention of heads that do not fit")
            except weft.ShapeError as problem:
                assert problem.code == "distributed.extent", problem
        fit, odd = nn.Linear(8 * n, 8 * n), nn.Linear(8 * n, 6 * n)
        refused(odd, odd, odd, nn.Linear(6 * n, 8 * n))
        refused(fit, nn.Linear(8 * n, 4 * n), fit, fit)
        print("ok", r)
    """,
    )
    passes(jobs, 3, path)


@needs_mpi
@pytest.mark.parametrize("stage", [1, 3])
def test_checkpoints_of_groups_of_pieces(program, jobs, tmp_path, stage):  # noqa: F811
    """An optimizer whose groups name the pieces in another order; saved on three ranks, read on two."""
    path = model_program(
        program,
        f"""
        folder = {str(tmp_path)!r}
        def groups(model):
            first, *rest = model.parameters()
            return optim.AdamW([dict(params=rest[::-1], lr=1e-3), dict(params=[first], lr=1e-2, weight_decay=0.1)])
        def steps(model, optimizer, numbers):
            for number in numbers:
                x = np.random.default_rng(number).standard_normal((6, 5)).astype("float32")
                ((model(weft.Tensor(x, requires_grad=False)) + 1) ** 2).mean().backward()
                optimizer.step()
                optimizer.zero_grad()
        model = dist.ShardedParallel(made(), stage={stage}, resident_bytes=0)
        optimizer = groups(model)
        if n == 3:
            steps(model, optimizer, range(3))
            model.save(folder + "/three", optimizer, 3)
        else:
            assert model.load(folder + "/three", optimizer) == 3
        steps(model, optimizer, range(3, 6))
        got = numbers(model)
        if n == 3 and r == 0:
            np.savez(folder + "/want.npz", **got)
        if n == 2:
            same(got, dict(np.load(folder + "/want.npz")))
        print("ok", r)
    """,
    )
    for ranks in (3, 2):
        passes(jobs, ranks, path)


@under
def test_narrow_words_wrap_around(program, jobs, launcher):  # noqa: F811
    """Sums and products of 8 and 16 bits wrap around on every transport, in small arrays and large ones."""
    path = program("""
        import numpy as np
        dist.init()
        r, n = dist.rank(), dist.size()
        for kind in ("int8", "uint8", "int16", "uint16"):
            ends = np.iinfo(kind)
            for size in (0, 1, 7, 1003, 300007):
                draw = np.random.default_rng(size)
                all_ranks = [draw.integers(ends.min, ends.max, n * size, dtype=kind, endpoint=True) for _ in range(n)]
                x = weft.asarray(all_ranks[r])
                for op, combine in (("sum", np.sum), ("prod", np.prod), ("max", np.max), ("min", np.min)):
                    rest = {"dtype": kind} if op in ("sum", "prod") else {}
                    want = combine(np.stack(all_ranks), axis=0, **rest)
                    for got, expected in (
                        (dist.all_reduce(x, op), want),
                        (dist.reduce_scatter(x, op), want[r * size : (r + 1) * size]),
                    ):
                        assert str(got.dtype) == kind and np.array_equal(got.numpy(), expected), (kind, size, op)
        for root in (1, np.int64(1)):
            assert dist.broadcast(weft.full((2,), float(r)), root).tolist() == [1, 1]
        print("ok", r)
    """)
    passes(jobs, 3, path, launcher=launcher)


@needs_mpi
def test_checkpoints_hold_buffers(program, jobs, tmp_path):  # noqa: F811
    """Statistics of batch norm, which no optimizer knows: rank 0's, on any number of ranks; older checkpoints lack them."""
    path = program(f"""
        from weft import nn
        import numpy as np, sys
        dist.init()
        r, folder = dist.rank(), {str(tmp_path)!r}
        made = lambda: dist.ShardedParallel(nn.Sequential(nn.Linear(5, 7), nn.BatchNorm1d(7)), resident_bytes=0)
        model = made()
        held = lambda: {{name: b.numpy() for name, b in model.module.named_buffers().items()}}
        if sys.argv[1] == "save":
            x = np.random.default_rng(r).standard_normal((6, 5)).astype("float32")
            model(weft.Tensor(x, requires_grad=False))
            model.save(folder)
            dist.save_sharded(folder + "/older", model.sharded_state(), dict(steps={{}}, metadata=None))
            if r == 0:
                np.savez(folder + "/own.npz", **held())
        else:
            new = held()
            model.load(folder + "/older")
            for name, x in held().items():
                assert np.array_equal(x, new[name]), name
            model.load(folder)
            saved = np.load(folder + "/own.npz")
            assert set(saved) == set(held()) and saved
            for name, x in held().items():
                assert np.array_equal(x, saved[name]), name
        print("ok", r)
    """)
    for ranks, what in ((3, "save"), (2, "load")):
        passes(jobs, ranks, path, what)


@needs_mpi
def test_checkpoints_load_in_any_stage_and_layout(program, jobs, tmp_path):  # noqa: F811
    """What is kept whole, shared out or frozen may be another after loading: a checkpoint knows parameters by their names and shapes."""
    path = program(f"""
        from weft import nn, optim
        import numpy as np, sys
        dist.init()
        r, n, folder = dist.rank(), dist.size(), {str(tmp_path)!r}
        class Net(nn.Module):
            def __init__(self, wide=9):
                super().__init__()
                self.first, self.second, self.last = nn.Linear(5, wide), nn.Linear(wide, 5), nn.Linear(5, 1, bias=False)
            def forward(self, x):
                return self.last(self.second(weft.tanh(self.first(x))))
        def trained(model, steps, optimizer=None):
            optimizer = optimizer or optim.Adam([p for p in model.parameters() if p.requires_grad], lr=0.05)
            for k in steps:
                x = np.random.default_rng(k).standard_normal((6, 5)).astype("float32")
                (model(weft.Tensor(x, requires_grad=False)) ** 2).mean().backward()
                optimizer.step(), optimizer.zero_grad()
            return optimizer
        def made(stage, resident, frozen=False, wide=9):
            weft.random.seed(5)
            net = Net(wide)
            net.first.bias.requires_grad = not frozen
            return net if stage == 0 else dist.ShardedParallel(net, stage=stage, resident_bytes=resident)
        def numbers(model):
            return {{k: v.numpy() for k, v in model.state_dict().items()}}
        kinds = [(1, 0), (2, 100), (3, 0), (3, 100), (3, 1 << 20)]
        if sys.argv[1] == "save":
            for stage, resident in kinds:
                model = made(stage, resident)
                model.save(f"{{folder}}/{{stage}}-{{resident}}", trained(model, range(3)), stage)
        else:
            whole = made(0, 0)
            trained(whole, range(5))
            want = numbers(whole)
            for stage, resident in kinds:
                for of, (other, kept) in enumerate(kinds):
                    model = made(stage, resident)
                    optimizer = optim.Adam(model.parameters(), lr=0.05)
                    assert model.load(f"{{folder}}/{{other}}-{{kept}}", optimizer) == other
                    trained(model, range(3, 5), optimizer)
                    for name, x in numbers(model).items():
                        np.testing.assert_allclose(x, want[name], atol=2e-5, err_msg=f"{{stage, resident, other, kept, name}}")
                model = made(stage, resident, frozen=True)
                optimizer = optim.Adam([p for p in model.parameters() if p.requires_grad], lr=0.05)
                model.load(f"{{folder}}/3-100", optimizer)
                before = numbers(model)
                trained(model, range(3, 5), optimizer)
                after = numbers(model)
                same = {{name for name in after if np.array_equal(before[name], after[name])}}
                assert same == {{"first.bias"}}, same
                try:
                    made(stage, resident, wide=3).load(f"{{folder}}/3-0")
                    raise AssertionError("loaded")
                except weft.ShapeError as problem:
                    assert problem.code == "distributed.checkpoint.shape", problem
                    assert "parameters.first.weight has shape (5, 3), the checkpoint has (5, 9)" in problem.message, problem
        print("ok", r)
    """)
    for ranks, what in ((3, "save"), (2, "load")):
        passes(jobs, ranks, path, what)


@needs_mpi
def test_ranks_scale_and_add_up_together(program, jobs):  # noqa: F811
    """An infinity in one rank's piece holds all ranks back; no_sync inside no_sync ends with the outer one."""
    path = model_program(
        program,
        """
        from weft import amp
        for stage in (1, 2, 3):
            model = dist.ShardedParallel(made(), stage=stage, resident_bytes=0)
            before = numbers(model)
            optimizer, scaler = optim.SGD(model.parameters(), lr=0.1), amp.GradScaler("cpu", init_scale=4.0)
            backward(model, own)
            if r == n - 1:
                piece = model.pieces[0]
                piece.grad = weft.full_like(piece.grad.data, float("inf"))
            scaler.step(optimizer)
            scaler.update()
            assert scaler.get_scale() == 2.0, scaler.get_scale()
            same(numbers(model), before)
        model = dist.DataParallel(made())
        with model.no_sync():
            with model.no_sync():
                pass
            backward(model, slice(r, r + 1))
        rows = dist.all_gather(model.module.first.weight.grad.data.reshape((1, -1))).numpy()
        assert not np.array_equal(rows[0], rows[1])
        print("ok", r)
    """,
    )
    passes(jobs, 2, path)


@needs_mpi
def test_compiled_functions_refuse_what_exchanges(program, jobs):  # noqa: F811
    """A trace would keep the pieces of its first call for ever; collectives and layers of several ranks say what they are."""
    path = model_program(
        program,
        """
        x = weft.ones((2, 5))
        class Wide(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = dist.ColumnParallelLinear(nn.Linear(5, 4))
            def forward(self, x):
                return self.layer(x)
        sharded = [dist.ShardedParallel(made(), stage=stage, resident_bytes=0) for stage in (1, 2, 3)]
        for called, word in (
            *((model, "ShardedParallel") for model in sharded),
            (lambda x: dist.all_reduce(x) + 1, "all_reduce"),
            (Wide(), "_Copy.apply"),
        ):
            try:
                weft.compile(called)(x)
                raise SystemExit(f"compiled {word}")
            except weft.ArgumentError as problem:
                assert problem.code == "compile.trace.unsupported" and word in str(problem), problem
        model = dist.DataParallel(made())
        compiled, alone = weft.compile(model), made()
        for number in range(2):
            backward(alone, every, number)
            backward(compiled, own, number)
            for one in (alone, model):
                optim.SGD(one.parameters(), lr=0.5).step()
                for p in one.parameters():
                    p.grad = None
        same(numbers(model), numbers(alone))
        print("ok", r)
    """,
    )
    passes(jobs, 2, path)


@needs_mpi
@pytest.mark.parametrize("stage", [1, 2])
def test_ranks_that_use_other_modules_reduce_in_one_order(program, jobs, stage):  # noqa: F811
    path = program(f"""
        from weft import nn
        dist.init()
        r = dist.rank()
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.a, self.c = nn.Linear(4, 4, bias=False), nn.Linear(4, 4, bias=False)
            def forward(self, x):
                return self.c(self.a(x)) if r == 0 else self.a(x)
        models = []
        for wrap in (
            lambda m: dist.DataParallel(m, bucket_bytes=1),  # a message for each weight, and equal sizes
            lambda m: dist.ShardedParallel(m, stage={stage}, resident_bytes=0),
        ):
            weft.random.seed(1)
            models.append(wrap(Model()))
            models[-1](weft.ones((1, 4))).sum().backward()
        want, model = models
        for piece, layer in zip(model.pieces, (want.module.a, want.module.c)):
            got = dist.all_gather(piece.grad.data)
            assert abs(got - layer.weight.grad.data.reshape(-1)).max() < 1e-5, (got, layer.weight.grad)
        print("ok", r)
    """)
    passes(jobs, 2, path)
