# SPDX-License-Identifier: Apache-2.0
"""Collectives on views and of handles that nobody waits for, ranks outside a group, jobs that are left and joined again, messages beyond an int."""

import functools
import pathlib
import signal
import sys
import types

import pytest
from launchers import (  # noqa: F401
    mpirun,
    needs_mpi,
    needs_torchrun,
    program,
    run,
    torchrun,
    whole_torchrun,
)

import weft
from weft import distributed as dist
from weft.distributed import collectives
from weft.distributed.environment import read_launch

PROGRAMS = pathlib.Path(__file__).parent / "distributed"

under = pytest.mark.parametrize(
    "launch",
    [
        pytest.param(lambda n, *args: mpirun(n, *args, seconds=200), marks=needs_mpi, id="mpirun"),
        pytest.param(lambda n, *args: torchrun(*args, ranks=n), marks=whole_torchrun, id="torchrun"),
    ],
)  # fmt: skip


def passes(launch, ranks, *command):
    status, text = launch(ranks, *command)
    assert status == 0 and text.count("ok") == ranks, text


@pytest.mark.parametrize(
    "launcher",
    [pytest.param("mpirun", marks=needs_mpi), pytest.param("torchrun", marks=needs_torchrun)],
)
def test_views_numbers_and_handles_that_nobody_waits_for(jobs, launcher):
    types = ["sizes"] if launcher == "torchrun" else []  # collectives.py has all under both
    passes(functools.partial(jobs, launcher), 3, PROGRAMS / "layouts.py", "cpu", *types)


@under
def test_ranks_outside_a_group_are_refused(program, launch):  # noqa: F811
    """None means all ranks: a rank outside that passed it on would mix with calls of theirs."""
    path = program("""
        import copy, pickle
        from weft import nn
        from weft.distributed import failure
        failure.LAST_WORDS = 1.0
        world = dist.init()
        r = dist.rank()
        def code(call, *args, **named):
            try:
                call(*args, **named)
            except weft.Error as problem:
                return problem.code
        pair = dist.new_group([2, 0])
        x = weft.ones((2,))
        if r == 1:
            for call in (dist.all_reduce, dist.all_gather, dist.broadcast):
                assert code(call, x, group=pair) == "distributed.group"
            assert code(dist.barrier, pair) == code(dist.DataParallel, nn.Linear(2, 2), pair) == "distributed.group"
            assert dist.rank(pair) == -1
        else:
            assert dist.all_reduce(x, group=pair).tolist() == [2, 2]
            dist.barrier(pair)
        for wrong in ([True, False], [0.5], [], [3], [1, 1]):
            assert code(dist.new_group, wrong) == "distributed.group", wrong
        for wrong in (True, 1.0, "1", None, 3, -1):
            assert code(dist.broadcast, x, wrong) == "distributed.rank", wrong
        for wrong in ([0, 1], "world", 2):
            assert code(dist.all_reduce, x, group=wrong) == "distributed.group", wrong
        assert code(dist.Mesh, (-1, -3)) == "distributed.mesh"
        assert copy.deepcopy(pair) is pair and code(pickle.dumps, pair) == "distributed.group"
        assert dist.all_reduce(weft.asarray([r > 0, False, True])).tolist() == [True, False, True]
        assert dist.all_reduce(weft.asarray([r > 0, False, True]), "prod").tolist() == [False, False, True]
        dist.shutdown()
        assert code(dist.all_reduce, x, group=world) == "distributed.init"
        again = dist.init()
        assert code(dist.all_reduce, x, group=world) == code(dist.all_reduce, x, group=pair) == "distributed.group"
        if r == 0:
            import time
            time.sleep(2)  # longer than a rank waits for one that has left
        assert dist.all_reduce(x).tolist() == [3, 3]
        print("all refused", r, flush=True)
        dist.new_group([0, 1] if r else [1, 0])
    """)
    status, text = launch(3, path)
    assert text.count("all refused") == 3 and status != 0, text
    assert "rank 0 calls new_group([1, 0]); rank 1 calls new_group([0, 1])" in text, text


@pytest.mark.parametrize(
    "launcher",
    [pytest.param("mpirun", marks=needs_mpi), pytest.param("torchrun", marks=needs_torchrun)],
)
def test_threads_call_in_groups_of_their_own(program, jobs, launcher):  # noqa: F811
    path = program("""
        import threading
        dist.init()
        r, n, wrong = dist.rank(), dist.size(), []
        def work(group, number):
            try:
                for i in range(60):
                    size = (5, 1000, 200_000)[i % 3]
                    got = dist.all_reduce(weft.full((size,), float(r + number)), group=group)
                    assert float(got[0]) == float(got[size - 1]) == sum(k + number for k in range(n))
                    assert dist.all_gather(weft.full((1,), float(r)), group).tolist() == list(range(n))
                    if i % 10 == 0:
                        dist.barrier(group)
            except BaseException as problem:
                wrong.append(problem)
        threads = [threading.Thread(target=work, args=(dist.new_group(range(n)), number)) for number in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong, wrong
        print("ok", r)
    """)
    passes(functools.partial(jobs, launcher), 3, path)


@needs_mpi
def test_groups_of_one_to_eight_ranks(program, jobs):  # noqa: F811
    """Every collective in groups of each size: of the first ranks, and of the last ones in turned order."""
    path = program("""
        import numpy as np
        dist.init()
        r = dist.rank()
        def rows(rank, size):
            return np.random.default_rng([rank, size]).integers(-9, 9, (2 * size, 3)).astype("float32")
        for size in range(1, 9):
            for ranks in (list(range(size)), list(range(8))[::-1][:size]):
                group = dist.new_group(ranks)
                if r not in ranks:
                    continue
                me, every = ranks.index(r), [rows(rank, size) for rank in ranks]
                x, own = weft.asarray(rows(r, size).T.copy()).T, slice(2 * me, 2 * me + 2)  # not compact
                total = np.sum(every, axis=0)
                turned = np.concatenate([part[own] for part in every])
                for got, want in (
                    (dist.all_reduce(x, group=group), total),
                    (dist.all_reduce(x, "min", group), np.min(every, axis=0)),
                    (dist.reduce_scatter(x, group=group), total[own]),
                    (dist.all_gather(x[1:], group), np.concatenate([part[1:] for part in every])),
                    (dist.broadcast(x, size - 1, group), every[-1]),
                    (dist.all_to_all(x, group), turned),
                ):
                    assert np.array_equal(got.numpy(), want), (ranks, got, want)
                dist.barrier(group)
        print("ok", r)
    """)
    passes(functools.partial(jobs, "mpirun"), 8, path)


def test_sums_of_truth_values_do_not_wrap_around():
    """256 ranks that say yes."""
    asked = []

    def start(send, out, op, overlap):
        asked.append(op)
        return lambda: None

    for op in ("sum", "prod", "max", "min"):
        moved = types.SimpleNamespace(transport=types.SimpleNamespace(means=True), dtype=weft.bool, sent=None)  # fmt: skip
        collectives._reduced(moved, None, op, None, start, False)
    assert asked == ["max", "min", "max", "min"]


@needs_mpi
def test_messages_of_more_bytes_than_an_int_counts(program, jobs):  # noqa: F811
    path = program("""
        import numpy as np
        from weft.distributed import mpi
        most, mpi._MOST = mpi._MOST, 1000  # in place of 2 GiB
        dist.init()
        r, n = dist.rank(), dist.size()
        for size in (250, 251, 3_001, 70_003):
            x = weft.arange(size, dtype="float32") + r
            whole = np.arange(size, dtype="float32")
            assert np.array_equal(dist.broadcast(x, 1).numpy(), whole + 1)
            assert np.array_equal(dist.all_gather(x).numpy(), np.concatenate([whole + i for i in range(n)]))
            work = dist.send(x, (r + 1) % n, async_op=True)
            assert np.array_equal(dist.recv(x, (r - 1) % n).numpy(), whole + (r - 1) % n)
            work.wait()
            rows = np.stack([whole + 10 * r] * n)
            got = dist.all_to_all(weft.asarray(rows)).numpy()
            assert np.array_equal(got, np.stack([whole + 10 * i for i in range(n)]))
            assert np.array_equal(dist.all_reduce(x).numpy(), whole * n + sum(range(n)))
        mpi._MOST = most
        print("ok", r, flush=True)
    """)
    passes(functools.partial(jobs, "mpirun"), 3, path)


@pytest.mark.parametrize(
    "variables, text",
    [
        ({"RANK": "1"}, "RANK=1 without WORLD_SIZE and MASTER_ADDR"),
        ({"WORLD_SIZE": "2"}, "WORLD_SIZE=2 without RANK and MASTER_ADDR"),
        ({"RANK": "0", "WORLD_SIZE": "2"}, "RANK=0, WORLD_SIZE=2 without MASTER_ADDR"),
        ({"PMI_RANK": "0", "PMI_SIZE": "2", "MPI_LOCALRANKID": "-1"}, "MPI_LOCALRANKID=-1"),
        ({"PMI_RANK": "2", "PMI_SIZE": "2"}, "PMI_RANK=2 and PMI_SIZE=2"),
    ],
)
def test_half_of_a_launchers_variables(variables, text):
    with pytest.raises(weft.ArgumentError, match=text) as caught:
        read_launch(variables)
    assert caught.value.code == "distributed.environment"


def test_variables_that_belong_to_no_job():
    for variables in ({"RANK": "0"}, {"WORLD_SIZE": "1"}, {"RANK": "captain"}, {"WORLD_SIZE": ""}):
        assert read_launch(variables).size == 1
    assert not dist.is_initialized()


def test_an_abort_that_does_not_end_the_rank_is_not_waited_for(program):  # noqa: F811
    """MPICH's Abort goes round for ever in MPI's end under a process manager that does not end the rank."""
    path = program("""
        from types import SimpleNamespace
        from weft.distributed import failure
        def abort(code):
            while True:
                pass
        failure._ABORT = 1
        board = failure.MpiBoard.__new__(failure.MpiBoard)
        board.communicator = SimpleNamespace(Abort=abort)
        board.leave()
    """)
    status, _ = run([sys.executable, path], seconds=60)
    assert status == -signal.SIGALRM


@needs_mpi
def test_what_leaving_ranks_say_is_taken_before_the_end_of_mpi(program):  # noqa: F811
    path = program("""
        import atexit
        def said():
            assert board.has_left(1 - r)
            print("ok", r, flush=True)
        atexit.register(said)  # called after the end of MPI
        dist.init()
        r, board = dist.rank(), dist.group.job().watch.board
        dist.barrier()
    """)
    status, text = mpirun(2, path, seconds=100)
    assert status == 0 and text.count("ok") == 2, text


@under
def test_a_rank_that_ends_gives_others_time_for_what_it_has_begun(launch, program):  # noqa: F811
    path = program("""
        import time
        dist.init()
        r = dist.rank()
        x = weft.ones((1000,))
        dist.barrier()
        if r == 0:
            time.sleep(1.5)
        works = [dist.all_reduce(x, async_op=True), dist.send(x, 1 - r, async_op=True), dist.recv(x, 1 - r, async_op=True)]
        for work in works if r == 0 else ():
            work.wait()
        print("ok", r)
    """)
    passes(launch, 2, path)


@needs_mpi
def test_forks_end_and_make_no_calls(program):  # noqa: F811
    """A fork of a rank ends by itself, where it waited in MPI's end; an error is told though the program has a hook of its own."""
    path = program("""
        import os, sys
        dist.init()
        r = dist.rank()
        x = weft.ones((2,))
        for number in range(2):
            child = os.fork()
            if child == 0 and number == 0:
                raise ValueError("in a fork")
            if child == 0:
                try:
                    dist.all_reduce(x)
                except weft.DeviceError as problem:
                    sys.exit(7 if problem.code == "distributed.fork" else 8)
            _, status = os.waitpid(child, 0)
            assert os.waitstatus_to_exitcode(status) == (1, 7)[number]
        assert dist.all_reduce(x).tolist() == [2, 2]
        sys.excepthook = lambda *about: print("went on", r, flush=True)
        if r == 1:
            raise ValueError("of rank one")
        try:
            dist.all_reduce(x)
        except weft.DeviceError as problem:
            print("told", problem.message, flush=True)
            raise
    """)
    status, text = mpirun(2, path, seconds=100)
    assert status != 0 and text.count("went on") >= 1, text
    assert "told another rank of the job failed: rank 1: ValueError: of rank one" in text, text
