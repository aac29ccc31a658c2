# SPDX-License-Identifier: Apache-2.0
"""weft.distributed: programs of tests/python/distributed under mpirun and torchrun, refusals, ranks that fail."""

import contextlib
import functools
import importlib.util
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import types

import numpy as np
import pytest
from launchers import (  # noqa: F401
    mpirun,
    needs_mpi,
    needs_torchrun,
    program,
    torchrun,
    whole_torchrun,
)

import weft
from weft import distributed as dist
from weft import nn
from weft.distributed import plan
from weft.distributed.environment import read_launch

PROGRAMS = pathlib.Path(__file__).parent / "distributed"


@contextlib.contextmanager
def refused(code, text, kind=weft.Error):
    """A refusal with this slug, whose message matches."""
    with pytest.raises(kind, match=text) as caught:
        yield
    assert caught.value.code == code, caught.value


@needs_mpi
@pytest.mark.parametrize("ranks, argument", [(1, "cpu"), (2, "cpu"), (3, "opencl:0"), (2, "debug")])
def test_collectives(jobs, ranks, argument):
    if argument.startswith("opencl") and not weft.device(argument).available:
        pytest.skip(weft.device(argument).reason)
    arguments = ("cpu", "debug") if argument == "debug" else (argument,)
    status, text = jobs("mpirun", ranks, PROGRAMS / "collectives.py", *arguments)
    assert status == 0, text
    assert text.count("ok") == ranks, text


@needs_mpi
def test_training_and_checkpoints_of_other_numbers_of_ranks(jobs, tmp_path):
    for ranks in (2, 3):
        if (tmp_path / "stage3").exists():
            shutil.copytree(tmp_path / "stage3", tmp_path / "other")
        status, text = jobs("mpirun", ranks, PROGRAMS / "training.py", tmp_path)
        assert status == 0, text


@pytest.mark.parametrize(
    "launcher",
    [pytest.param("mpirun", marks=needs_mpi), pytest.param("torchrun", marks=needs_torchrun)],
)
def test_views_means_of_large_halves_and_long_arrays(program, jobs, launcher):  # noqa: F811
    """A view is sent from its own first element, a mean is divided before it is narrowed, parts of long arrays end where the arrays end."""
    path = program("""
        dist.init()
        r = dist.rank()
        row = weft.arange(12, dtype="float32") + 100 * r
        assert dist.all_reduce(row[5:8]).tolist() == [315, 318, 321]
        assert dist.all_gather(row[5:8]).tolist() == [5, 6, 7, 105, 106, 107, 205, 206, 207]
        assert dist.broadcast(row[5:8], 1).tolist() == [105, 106, 107]
        large = weft.full((3,), 60000, dtype="float16")
        assert dist.all_reduce(large, "mean").tolist() == large.tolist()
        for size in (600_001, 1_100_003):
            x = weft.arange(size, dtype="float32")
            guard = weft.arange(64, dtype="float32")
            got = dist.all_reduce(x * (r + 1))
            assert bool(weft.all(got == 6 * x)) and bool(weft.all(guard == weft.arange(64)))
            a, b = dist.all_reduce(x[: size // 2]), dist.all_reduce(x[size // 2 :], "max")
            assert bool(weft.all(weft.concat([a / 3, b]) == x))
        print("ok", r)
    """)
    status, text = jobs(launcher, 3, path)
    assert status == 0 and text.count("ok") == 3, text


@needs_mpi
@pytest.mark.parametrize("stage", [1, 2, 3])
def test_gradients_of_sharded_models_add_up(program, jobs, stage):  # noqa: F811
    """Two passes before the gradients are forgotten count as one pass of their sum."""
    path = program(f"""
        from weft import nn, optim
        dist.init()
        def trained(passes):
            weft.random.seed(3)
            model = dist.ShardedParallel(nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 2)), stage={stage}, resident_bytes=0)
            steps = optim.SGD(model.parameters(), lr=0.5)
            x = weft.Tensor(weft.arange(24, dtype="float32").reshape((4, 6)) / 24 + dist.rank())
            for _ in range(passes):
                loss = weft.mean(model(x) ** 2) * (2 / passes)
                loss.backward()
            steps.step()
            return {{k: v.numpy() for k, v in model.state_dict().items()}}
        one, two = trained(1), trained(2)
        assert all(abs(one[k] - two[k]).max() < 1e-5 for k in one), (one, two)
        print("ok", dist.rank())
    """)
    status, text = jobs("mpirun", 2, path)
    assert status == 0 and text.count("ok") == 2, text


@needs_torchrun
def test_torchrun(jobs):
    status, text = jobs("torchrun", 3, PROGRAMS / "collectives.py", "cpu")
    assert status == 0 and text.count("ok") == 3, text


@needs_mpi
def test_three_models_have_the_losses_of_one_device(jobs):
    status, text = jobs("mpirun", 2, PROGRAMS / "models.py", "cpu")
    assert status == 0 and text.count(": ok") == 2, text
    for name in ("MLP", "GPT", "ResNet-9"):
        assert text.count(name) == 2, text


@needs_mpi
def test_sharded_training_needs_half_the_memory(program):
    path = program("""
        from weft import nn, optim
        dist.init()
        def peak(wrap):
            weft.random.seed(0)
            model = wrap(nn.Sequential(*[nn.Linear(256, 256) for _ in range(24)]))
            optimizer = optim.Adam(model.parameters(), lr=1e-4)
            x = weft.Tensor(weft.ones((8, 256)), requires_grad=False)
            for _ in range(3):
                (model(x) ** 2).mean().backward()
                optimizer.step()
                optimizer.zero_grad()
            return weft.device("cpu").stats()["bytes.peak"]
        shared, whole = peak(lambda m: dist.ShardedParallel(m, stage=3)), peak(lambda m: m)  # the larger one last
        if dist.rank() == 0:
            print("peaks", shared, whole)
    """)
    status, text = mpirun(2, path)
    assert status == 0, text
    shared, whole = map(int, text.split()[1:])
    # The model is made whole before it is shared out: 1 of the 4 that training holds on one card.
    assert shared <= 0.6 * whole, (shared, whole)


KILLED = """
    import os, signal, sys, time
    dist.init()
    x = weft.ones((1 << 20,))
    dist.all_reduce(x)
    if dist.rank() == 1:
        if sys.argv[1] == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        work = dist.all_reduce(x, async_op=True)
        os.kill(os.getpid(), signal.SIGKILL)
    try:
        if sys.argv[1] == "elsewhere":
            for _ in range(3000):
                time.sleep(0.1)
        if sys.argv[2:]:  # in the exchange of small values
            dist.save_sharded(sys.argv[2], {"x": x})
        for _ in range(2):
            dist.all_reduce(x)
    except weft.DeviceError as problem:
        print(f"rank {dist.rank()} saw {problem.code}: {problem.message}", flush=True)
        raise
"""


def named(text, ranks=(0, 2)):
    return all(
        re.search(rf"rank {r} saw distributed.peer.*rank 1: its process \d+ is gone", text)
        for r in ranks
    )


@needs_mpi
@pytest.mark.parametrize("where", ["before", "during", "elsewhere"])
def test_a_killed_rank_is_named_on_every_other(program, where):
    status, text = mpirun(
        3, program(KILLED), where, seconds=250
    )  # "elsewhere": less than its loop lasts
    assert status != 0 and named(text), text


VALUES = """
    from weft.distributed.group import resolve
    dist.init()
    group = resolve(None)
    r, n, host = group.rank, group.size, group.host
    assert host.exchange({"a": [1, r]}) == {"a": [1, 0]}
    assert host.exchange(b"x" * (10 + r), n - 1) == b"x" * (9 + n)
    assert host.gather_values((r, "y" * 100 * r)) == [(i, "y" * 100 * i) for i in range(n)]
    print("told", r)
"""


@needs_mpi
def test_values_of_all_ranks(program, jobs):
    status, text = jobs("mpirun", 3, program(VALUES))
    assert status == 0 and text.count("told") == 3, text


@needs_torchrun
def test_values_of_all_ranks_under_torchrun(program, jobs):
    status, text = jobs("torchrun", 3, program(VALUES))
    assert status == 0 and text.count("told") == 3, text


@needs_mpi
def test_a_rank_killed_while_others_save_is_named(program, tmp_path):
    status, text = mpirun(3, program(KILLED), "before", tmp_path / "checkpoint", seconds=250)
    assert status != 0 and named(text), text


@whole_torchrun
@pytest.mark.parametrize("where", ["before", "elsewhere"])
def test_a_killed_rank_is_named_under_torchrun(program, where):
    status, text = torchrun(program(KILLED), where, ranks=3, look=5)
    assert status != 0 and named(text), text


@needs_mpi
@needs_torchrun
@pytest.mark.parametrize("ranks", [2, pytest.param(3, marks=whole_torchrun)])
def test_torchrun_starts_again_from_the_last_checkpoint(program, jobs, tmp_path, ranks):
    """The other ranks name the one that was killed, before torchrun looks."""
    example = pathlib.Path(__file__).resolve().parents[2] / "examples/distributed/elastic.py"
    watched = program(f"""
        import runpy
        try:
            runpy.run_path({str(example)!r}, run_name="__main__")
        except weft.DeviceError as problem:
            print(f"rank {{dist.rank()}} saw {{problem.code}}: {{problem.message}}", flush=True)
            raise
    """)
    status, text = torchrun(watched, tmp_path / "a", 12, 8, ranks=ranks, restarts=3, look=1)
    assert status == 0 and "goes on at step 5" in text and named(text, range(0, ranks, 2)), text
    other = "mpirun" if ranks == 2 else "torchrun"  # sums of two have one order
    status, whole = jobs(other, ranks, example, tmp_path / "b", 12)
    assert status == 0, whole
    last = re.compile(r"step 12, loss ([0-9.]+)")
    assert last.search(text)[1] == last.search(whole)[1]
    status, again = jobs(other, ranks, example, tmp_path / "b", 10)
    assert status == 0 and "all was done before" in again, again


@needs_mpi
def test_versions_that_differ_are_named(program, jobs):
    path = program("""
        import os
        own = weft.__version__
        weft.__version__ += ".other" * int(os.environ["OMPI_COMM_WORLD_RANK"])
        try:
            dist.init()
        except weft.DeviceError as problem:
            assert problem.code == "distributed.versions", problem
            assert "the ranks of the job run 2 versions of weft" in problem.message
            print("told")
        weft.__version__ = own
    """)
    status, text = jobs("mpirun", 2, path)
    assert status == 0 and text.count("told") == 2, text


@needs_mpi
def test_an_error_of_one_rank_is_named_on_every_other(program):
    path = program("""
        import sys, time
        dist.init()
        if dist.rank() == 1:
            raise ValueError("the third batch is damaged")
        try:
            dist.all_reduce(weft.ones((4,)))
        except weft.DeviceError as problem:
            print(f"rank {dist.rank()} saw {problem.code}: {problem.message}", flush=True)
            raise
    """)
    status, text = mpirun(3, path)
    assert status != 0, text
    for rank in (0, 2):
        assert f"rank {rank} saw distributed.peer" in text
    assert (
        text.count("another rank of the job failed: rank 1: ValueError: the third batch is damaged")
        >= 2
    )


LEFT = """
    import sys
    dist.init(timeout=60)
    x = weft.ones((4,))
    dist.all_reduce(x)
    pair = dist.new_group([0, 2])
    if dist.rank() == 1:
        sys.exit(0)  # an uneven number of batches
    assert float(dist.all_reduce(x, group=pair)[0]) == 2  # those who are there go on
    try:
        dist.all_reduce(x)
    except weft.DeviceError as problem:
        print(f"rank {dist.rank()} saw {problem.code}: {problem.message}", flush=True)
        raise
"""


def left(text):
    return all(
        re.search(rf"rank {r} saw distributed.peer.*rank 1 has left the job", text) for r in (0, 2)
    )


@needs_mpi
def test_a_rank_that_left_is_named_by_those_who_wait(program):
    status, text = mpirun(3, program(LEFT), seconds=250)
    assert status != 0 and left(text), text


@needs_mpi
def test_ranks_that_left_early_do_not_keep_a_failed_job(program):
    """Open MPI's launcher waits for ever in a third of the cases where a rank is in MPI's end when another one ends the job."""
    path = program("""
        dist.init(timeout=60)
        dist.barrier()
        if dist.rank() % 2 == 0:
            raise ValueError("one more batch, and it is damaged")
    """)
    for ranks in (2, 3, 4):
        status, text = mpirun(ranks, path, seconds=60)
        assert status == 1 and "it is damaged" in text, text


@whole_torchrun
def test_a_rank_that_left_is_named_under_torchrun(program):
    status, text = torchrun(program(LEFT), ranks=3)
    assert status != 0 and left(text), text


def test_ranks_share_the_processors_of_a_host():
    from weft.distributed.start import share_of

    assert share_of([0, 1], [[0, 1], [0, 1]]) == 1
    assert share_of([0], [[0], [1]]) == 1
    assert share_of(list(range(16)), [list(range(16))] * 4) == 4
    assert share_of([0, 1, 2, 3], [[0, 1, 2, 3], [2, 3]]) == 3
    assert share_of([0, 1], [[0, 1]] * 8) == 1


@needs_mpi
def test_ranks_out_of_step(program, jobs):
    path = program("""
        import os
        dist.init(debug=os.environ["OMPI_COMM_WORLD_RANK"] == "1")  # one that asks for it is enough
        try:
            dist.all_reduce(weft.ones((4 + dist.rank(),)))
        except weft.DeviceError as problem:
            assert problem.code == "distributed.mismatch", problem
            assert "all_reduce(sum) of float32[4]" in str(problem) and "all_reduce(sum) of float32[5]" in str(problem)
            print("told", dist.rank())
    """)
    status, text = jobs("mpirun", 2, path)
    assert status == 0 and text.count("told") == 2, text


@needs_mpi
def test_interrupts_pass_through_a_collective(program, jobs, tmp_path):
    told = str(tmp_path / "told")
    path = program(f"""
        import os, signal, threading, time
        dist.init()
        while dist.rank() == 1 and not os.path.exists({told!r}):
            time.sleep(0.1)
        if dist.rank() == 0:
            try:
                threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
                dist.all_reduce(weft.ones((4,)))
            except KeyboardInterrupt:
                print("interrupted", flush=True)
                open({told!r}, "w").close()
        else:
            dist.all_reduce(weft.ones((4,)))  # the other's call goes on
    """)
    status, text = jobs("mpirun", 2, path)
    assert status == 0 and "interrupted" in text, text


@pytest.fixture
def alone():
    """A job of this process alone."""
    for name in ("RANK", "WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"):
        assert name not in os.environ
    group = dist.init()
    yield group
    dist.shutdown()


def test_alone_collectives_give_their_argument_back(alone):
    x = weft.asarray(np.arange(6, dtype="float32"))
    for f in (
        dist.all_reduce,
        dist.all_gather,
        dist.reduce_scatter,
        dist.all_to_all,
        dist.broadcast,
    ):
        np.testing.assert_array_equal(f(x).numpy(), x.numpy())
        np.testing.assert_array_equal(f(x, async_op=True).wait().numpy(), x.numpy())
    number = weft.Tensor(weft.asarray(2.5))
    row = dist.all_gather(number)  # as among several ranks
    assert row.shape == (1,)
    (row * 3).sum().backward()
    assert number.grad.shape == () and float(number.grad) == 3
    dist.barrier()
    assert (dist.rank(), dist.size(), dist.local_rank()) == (0, 1, 0)
    assert dist.is_initialized() and dist.init() is alone
    assert dist.device().available


def test_refusals(alone, tmp_path):
    x = weft.ones((4,))
    with refused("distributed.op", "the combination 'average' is unknown", kind=weft.ArgumentError):
        dist.all_reduce(x, "average")
    with refused("distributed.argument", "all_reduce takes an array or a tensor, got a list"):
        dist.all_reduce([1.0])
    with refused("distributed.dtype", "all_reduce of complex64 with max"):
        dist.all_reduce(x.astype(weft.complex64), "max")
    with refused("distributed.rank", "send with rank 0"):
        dist.send(x, 0)
    with refused("distributed.rank", "broadcast with rank 3"):
        dist.broadcast(x, 3)
    with refused("distributed.gradient", "send of a tensor that requires gradients"):
        dist.send(weft.Tensor(x), 1)
    with refused("distributed.gradient", "all_reduce with max of a tensor that requires gradients"):
        dist.all_reduce(weft.Tensor(x), "max")
    with refused("distributed.group", r"a group of the ranks \[0, 0\]"):
        dist.new_group([0, 0])
    with refused("distributed.mesh", r"a mesh of \(2, 2\) with the axes"):
        dist.Mesh((2, 2))
    mesh = dist.Mesh((1,), ("data",))
    with refused("distributed.mesh", "the mesh has no axis 'model'"):
        mesh.group("model")
    with refused(
        "distributed.placement", r"the placements \(Shard\(axis=1\),\) of an array of 1 axes"
    ):
        dist.shard(x, mesh, [dist.Shard(1)])
    with refused("distributed.matmul", "a product of ShardedArray"):
        dist.shard(x, mesh, [dist.Shard(0)]) @ dist.shard(x, mesh, [dist.Shard(0)])
    with refused("distributed.operands", r"einsum\('ij->k'\)"):
        dist.einsum("ij->k", dist.shard(x, mesh, [dist.Shard(0)]))
    with refused("distributed.linear", "linear 'both'"):
        dist.elementwise(weft.exp, dist.shard(x, mesh, [dist.Shard(0)]), linear="both")
    with refused("distributed.plan", "a plan for Job"):
        plan.plan(plan.Job(0, 1.0))
    with refused("distributed.stage", "stage 4"):
        dist.ShardedParallel(nn.Linear(2, 2), stage=4)
    with refused("distributed.embedding", "index 9 into an embedding of 4 rows"):
        dist.ParallelEmbedding(nn.Embedding(4, 2))(weft.asarray([9]))
    with refused("distributed.checkpoint.load", "is no whole checkpoint"):
        dist.load_sharded(tmp_path)
    (tmp_path / "index.json").write_text('{"format": "other", "version": 1}')
    with refused("distributed.checkpoint.load", "format other 1"):
        dist.load_sharded(tmp_path)
    dist.save_sharded(tmp_path, {"x": x})
    piece = dist.checkpoint.Piece(weft.zeros((2,)), (8,), (0,))
    with refused("distributed.checkpoint.shape", r"x has shape \(8,\), the checkpoint has \(4,\)"):
        dist.load_sharded(tmp_path, {"x": piece})
    with refused("distributed.checkpoint.load", r"it lacks \['y'\]"):
        dist.load_sharded(tmp_path, {"y": x})


@needs_mpi
def test_refusals_of_several_ranks(program, jobs):
    path = program("""
        dist.init()
        def expect(code, f):
            try:
                f()
            except weft.Error as problem:
                assert problem.code == code, problem
            else:
                raise AssertionError(code)
        x = weft.ones((3,))
        expect("distributed.extent", lambda: dist.reduce_scatter(x))
        expect("distributed.extent", lambda: dist.all_to_all(x))
        expect("distributed.extent", lambda: dist.ColumnParallelLinear(weft.nn.Linear(2, 3)))
        expect("distributed.dtype", lambda: dist.all_reduce(weft.ones((2,), dtype=weft.int32), "mean"))
        mesh = dist.Mesh((2,), ("data",))
        expect("distributed.extent", lambda: dist.shard(x, mesh, [dist.Shard(0)]))
        dist.barrier()
        print("all refused", dist.rank())
    """)
    status, text = jobs("mpirun", 2, path)
    assert status == 0 and text.count("all refused") == 2, text


def test_times_that_are_none():
    for timeout in (0, -1, float("nan"), float("inf")):
        with refused("distributed.timeout", "init", kind=weft.ArgumentError):
            dist.init(timeout=timeout)
    assert not dist.is_initialized()


def test_before_init():
    with refused("distributed.init", "this process has not joined a job"):
        dist.all_reduce(weft.ones((2,)))


def test_launchers():
    assert read_launch({}).size == 1
    torch = {
        "RANK": "3",
        "WORLD_SIZE": "8",
        "LOCAL_RANK": "1",
        "LOCAL_WORLD_SIZE": "2",
        "MASTER_ADDR": "a",
    }
    got = read_launch({**torch, "SLURM_PROCID": "0", "SLURM_NTASKS": "1"})
    assert (got.launcher, got.rank, got.size, got.local_rank, got.local_size) == (
        "torchrun",
        3,
        8,
        1,
        2,
    )
    got = read_launch({"SLURM_PROCID": "5", "SLURM_NTASKS": "6", "SLURM_LOCALID": "1"})
    assert (got.launcher, got.rank, got.size, got.local_rank) == ("mpi", 5, 6, 1)
    step = {"SLURM_NTASKS": "8", "SLURM_LOCALID": "0", "SLURM_STEP_TASKS_PER_NODE": "2(x3),1,1"}
    step |= {
        "SLURM_JOB_NODELIST": "node[01-03,07,09]",
        "SLURM_NTASKS_PER_NODE": "2",
    }  # the last, of the job
    for rank, node, here in ((0, 0, 2), (4, 2, 2), (6, 3, 1), (7, 4, 1)):
        got = read_launch({**step, "SLURM_PROCID": str(rank), "SLURM_NODEID": str(node)})
        assert (got.rank, got.size, got.local_size) == (rank, 8, here)
    got = read_launch({"PMI_RANK": "1", "PMI_SIZE": "2"})
    assert (got.launcher, got.rank, got.size) == ("mpi", 1, 2)
    with refused("distributed.environment", "the launcher's variable RANK is 'two'"):
        read_launch({**torch, "RANK": "two"})
    with refused("distributed.environment", "RANK=8 and WORLD_SIZE=8"):
        read_launch({**torch, "RANK": "8"})


def test_without_nccl(monkeypatch):
    from weft.distributed import nccl

    monkeypatch.setenv("WEFT_NCCL", "/nowhere/libnccl.so.2")
    with refused("distributed.nccl.absent", "libnccl.so.2 cannot be opened"):
        nccl.load()


def test_without_mpi4py(monkeypatch):
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    monkeypatch.setenv("PMI_RANK", "0")
    monkeypatch.setenv("PMI_SIZE", "2")
    with refused("distributed.mpi.absent", "mpi4py cannot be imported"):
        dist.init()
    assert not dist.is_initialized()


def test_srun_without_a_process_manager(monkeypatch):
    for name, value in {"SLURM_PROCID": "0", "SLURM_NTASKS": "2", "SLURM_LOCALID": "0"}.items():
        monkeypatch.setenv(name, value)
    with refused("distributed.slurm", "srun has started this process without a process manager"):
        dist.init()
    assert not dist.is_initialized()


def test_a_closed_communicator():
    from weft.distributed import nccl

    own = nccl.Nccl.__new__(nccl.Nccl)
    own.rank, own._number = 1, None
    with refused(
        "distributed.nccl.closed", "a collective on rank 1 after its communicator was ended"
    ):
        own._run([], (), False)


def test_without_torch(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.distributed", None)
    for name, value in {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1"}.items():
        monkeypatch.setenv(name, value)
    with refused("distributed.torch", "PyTorch cannot be imported"):
        dist.init()


def test_a_job_that_cannot_be_joined(monkeypatch):
    if importlib.util.find_spec("torch") is None:
        pytest.skip("PyTorch is not installed")
    variables = {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "9"}
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with refused("distributed.start", "rank 1 of 2 cannot join the job at 127.0.0.1:9"):
        dist.init(timeout=2)


class _Works:
    """A stand-in for a collective that fails, after it was looked for once."""

    looked = 0

    def is_completed(self):
        return self.looked > 1

    def wait(self, timeout=None):
        self.looked += 1
        raise RuntimeError("Connection closed by peer" if self.looked > 1 else "timed out")


def test_faults_of_the_libraries_become_errors(monkeypatch):
    """Each library's own report, with the library replaced by what it would say."""
    from weft.distributed import failure, gloo, mpi, nccl

    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    job = types.SimpleNamespace(
        check=lambda: None, check_present=lambda ranks, waited=None: None, looked=0.0
    )
    own = types.SimpleNamespace(rank=1, ranks=[0, 1], job=job, _open=[])
    own._failed = functools.partial(gloo.Gloo._failed, own)
    with refused("distributed.gloo", "Gloo reports on rank 1: Connection closed by peer"):
        gloo.Gloo._finish(own, gloo._Collective(_Works()))()
    assert not gloo._Collective(_Works()).ends(0.1)
    problem = types.SimpleNamespace(Get_error_string=lambda: "MPI_ERR_TRUNCATE")
    with refused("distributed.mpi", "MPI reports on rank 1: MPI_ERR_TRUNCATE"):
        raise mpi.Mpi._failed(own, problem)
    own.lib = types.SimpleNamespace(ncclGetErrorString=lambda status: b"unhandled system error")
    with refused("distributed.nccl", "ncclAllReduce failed on rank 1: unhandled system error"):
        nccl.Nccl._check(own, "ncclAllReduce", 2)
    driver = nccl._Driver.__new__(nccl._Driver)
    driver.lib = types.SimpleNamespace(cuEventRecord=lambda *args: 700)
    with refused("distributed.cuda", "cuEventRecord gives status 700"):
        driver("cuEventRecord", None)
    watch = failure.Watch.__new__(failure.Watch)
    watch.failed, watch._main = failure.Failure("rank 2: ValueError: x"), None
    with refused("distributed.peer", "another rank of the job failed: rank 2: ValueError: x"):
        watch.check()


def test_a_failure_that_is_told_leaves_the_interpreter_as_it_was():
    """CPython 3.11 never begins a traced function while it looks for an exception from outside: debuggers hang then."""
    program = """
import sys, threading
from weft.distributed import failure
watch = failure.Watch.__new__(failure.Watch)
watch._first, watch._main = threading.Lock(), threading.get_ident()
watch.failed = failure.Failure("rank 2: ValueError: x")
watch._claim(watch.failed)
try:
    watch.check()
except Exception as told:
    assert "rank 2" in str(told)
def traced():
    sys._getframe().f_trace = None
    return 1
sys.settrace(lambda frame, event, argument: None)
traced()
sys.settrace(None)
print("went on")
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "went on\n", done.stderr


@pytest.mark.parametrize("posted", [True, False])
def test_a_rank_that_is_ended_before_its_next_look_knows_why(monkeypatch, posted):
    """The launcher has ended rank 2 already, because of what rank 1 had said."""
    from weft.distributed import failure

    ended = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
    looks = [failure.Failure("rank 1: ValueError: x") if posted else None]
    board = types.SimpleNamespace(look=lambda: looks.pop() if looks else None, has_left=lambda rank: False)  # fmt: skip
    watch = failure.Watch.__new__(failure.Watch)
    watch.failed, watch.board, watch.met, watch._process = None, board, True, os.getpid()
    watch.peers, watch._main = {2: ended.pid}, threading.get_ident()
    watch._first, watch._asks, watch._told = threading.Lock(), threading.Lock(), None
    watch._stop = threading.Event()
    watch.launcher = types.SimpleNamespace(gone=lambda: None)
    told = "rank 1: ValueError: x" if posted else rf"rank 2: its process {ended.pid} is gone"
    before = signal.getsignal(signal.SIGTERM)
    try:
        with refused("distributed.peer", f"another rank of the job failed: {told}"):
            watch._ended_by_launcher()
    finally:
        signal.signal(signal.SIGTERM, before)
        ended.wait()
    assert watch._stop.is_set() and (not posted or watch._found().text == told)


def test_the_plan_follows_its_model(capsys, tmp_path):
    machine = plan.Machine(link=100e9, latency=0, network=10e9, network_latency=0)
    assert plan.all_reduce_seconds(800e6, 2, machine) == pytest.approx(800e6 / 100e9)
    # 16 cards on two hosts: 7/8 of the bytes twice inside, and an eighth between.
    want = 2 * 800e6 * 7 / 8 / 100e9 + 100e6 / 10e9
    assert plan.all_reduce_seconds(800e6, 16, machine) == pytest.approx(want)
    rows = plan.plan(plan.Job(200_000_000, 1e-3), machine=machine)
    assert [n for n, _, _ in rows] == [1, 2, 8, 64, 512] and rows[0][2] == 1
    assert all(a[2] > b[2] for a, b in zip(rows, rows[1:]))
    # Sharded: parameters are gathered in a forward third and twice in the backward one, gradients scattered in it.
    for parameters, step in ((200_000_000, 1e-3), (200_000_000, 0.03), (20_000_000, 0.05), (400_000_000, 0.02)):  # fmt: skip
        size = parameters * 4
        whole = plan.all_reduce_seconds(25 << 20, 16, machine) * size / (25 << 20)
        last, gather = plan.all_reduce_seconds(25 << 20, 16, machine), whole / 2
        waited = max(gather - step / 3, last / 2) + max(whole - 2 * step / 3, last / 2)
        want = waited + machine.slowdown * 1.5 * whole
        job = plan.Job(parameters, step, stage=3)
        assert plan.exposed_seconds(job, 16, machine) == pytest.approx(want), (parameters, step)
    plan.main(["--parameters", "1e6", "--step", "0.01", "--picture", str(tmp_path / "p.svg")])
    assert "512 cards" in capsys.readouterr().out
    assert (tmp_path / "p.svg").read_text().startswith("<svg")


def test_the_plan_agrees_with_the_record_of_two_cards():
    kept = pathlib.Path(__file__).resolve().parents[2] / "bench/results/several_cards.json"
    measured = {row["name"]: row["ours"] for row in json.loads(kept.read_text())["rows"]}
    for job, name in (("12 blocks", "12 blocks of 768"), ("ResNet-50", "ResNet-50, 32")):
        (found,) = [ratio for row, ratio in measured.items() if row.startswith(name)]
        _, two = plan.plan(plan.EXAMPLES[job], counts=(1, 2))
        assert 1 / two[2] == pytest.approx(found, rel=0.02), job


@needs_mpi
def test_examples(jobs, tmp_path):
    folder = pathlib.Path(__file__).resolve().parents[2] / "examples" / "distributed"
    status, text = jobs("mpirun", 2, folder / "data_parallel.py", 6)
    assert status == 0 and "on 2 x" in text, text
    status, text = jobs("mpirun", 2, folder / "tensor_parallel.py")
    assert status == 0 and "4 heads each" in text, text
    for ranks, steps in ((2, "0 to 3"), (1, "3 to 6")):
        status, text = jobs("mpirun", ranks, folder / "sharded.py", tmp_path, 3)
        assert status == 0 and f"steps {steps}" in text, text


def test_the_guide_runs(tmp_path, monkeypatch):
    page = pathlib.Path(__file__).resolve().parents[2] / "docs" / "guide" / "distributed.md"
    names = {}
    monkeypatch.chdir(tmp_path)
    for block in re.findall(r"^```python\n(.*?)^```", page.read_text(), re.M | re.S):
        exec(compile(block, str(page), "exec"), names)
    dist.shutdown()
