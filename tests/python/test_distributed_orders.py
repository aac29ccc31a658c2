# SPDX-License-Identifier: Apache-2.0
"""Programs that begin in another order: MPI or torch.distributed before init(), init() twice, forks and spawned processes of a rank."""

import pytest
from launchers import mpirun, needs_mpi, needs_torchrun, program, torchrun, whole_torchrun  # noqa: F401

under = pytest.mark.parametrize(
    "launcher",
    [pytest.param("mpirun", marks=needs_mpi), pytest.param("torchrun", marks=needs_torchrun)],
)

CHILDREN = """
    import multiprocessing, os

    def work(queue):
        try:
            dist.init(timeout=20)
            queue.put("joined")
        except weft.Error as problem:
            queue.put(problem.code)

    def status_of(call):
        child = os.fork()
        if child == 0:
            os._exit(call())
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    def computes():
        return 3 if float((weft.ones((64, 64)) @ weft.ones((64, 64)))[0, 0]) == 64 else 5

    def joins():
        dist.shutdown()  # of the fork alone
        try:
            dist.init(timeout=20)
        except weft.DeviceError as problem:
            return 3 if problem.code == "distributed.child" else 5
        return 6

    if __name__ == "__main__":
        weft.ones((4,)) + 1
        assert status_of(computes) == 3  # before init()
        group = dist.init()
        assert dist.init(timeout=5) is group
        assert status_of(computes) == status_of(joins) == 3
        context = multiprocessing.get_context("spawn")
        queue = context.Queue()
        child = context.Process(target=work, args=(queue,))
        child.start()
        assert queue.get(timeout=100) == "distributed.child"
        child.join()
        assert dist.all_reduce(weft.ones((2,))).tolist() == [3, 3]
        print("ok", dist.rank(), flush=True)
"""


@under
def test_processes_that_a_rank_starts_are_no_ranks(program, jobs, launcher):  # noqa: F811
    status, text = jobs(launcher, 3, program(CHILDREN))
    assert status == 0 and text.count("ok") == 3, text


@needs_mpi
def test_programs_that_begin_mpi_themselves(program):  # noqa: F811
    """A fork's end is bounded and named where mpi4py would wait for ever; what has ended does not begin again."""
    path = program("""
        import os, sys, time
        from mpi4py import MPI
        from weft.distributed import start
        start._FORK_ENDS = 1
        dist.init()
        r = dist.rank()
        assert dist.all_reduce(weft.ones((3,))).tolist() == [2, 2, 2]
        begun, child = time.monotonic(), os.fork()
        if child == 0:
            sys.exit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -14 and time.monotonic() - begun < 60
        assert dist.all_reduce(weft.ones((3,))).tolist() == [2, 2, 2]
        dist.shutdown()
        MPI.Finalize()
        try:
            dist.init(timeout=20)
        except weft.DeviceError as problem:
            assert problem.code == "distributed.mpi.ended" and "MPI has ended in this process" in problem.message, problem
            print("ok", r, flush=True)
    """)
    status, text = mpirun(2, path, seconds=200)
    assert status == 0 and text.count("ok") == 2, text
    assert (
        text.count("error[distributed.fork.end]") == 2
        and "would wait for ever in the end of MPI" in text
    ), text


@needs_mpi
@pytest.mark.parametrize("given", ["thread_level = 'serialized'", "initialize = False"])
def test_programs_that_set_how_mpi_begins(program, given):  # noqa: F811
    path = program(f"""
        import mpi4py, os, sys
        mpi4py.rc.{given}
        from mpi4py import MPI
        try:
            dist.init(timeout=60)
            assert dist.all_reduce(weft.ones((3,))).tolist() == [2, 2, 2]
            child = os.fork()
            if child == 0:
                sys.exit(7)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
            print("joined", flush=True)
        except weft.DeviceError as problem:
            assert problem.code == "distributed.mpi.threads", problem
            assert "the program has begun MPI for threads of level" in problem.message
            print("refused", flush=True)
    """)
    status, text = mpirun(2, path, seconds=200)
    assert status == 0 and text.count("refused" if "thread" in given else "joined") == 2, text


@whole_torchrun
def test_a_fork_that_ends_like_a_program_under_torchrun(program):  # noqa: F811
    path = program("""
        import os, sys
        dist.init()
        child = os.fork()
        if child == 0:
            sys.exit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) in (7, -14)
        assert dist.all_reduce(weft.ones((3,))).tolist() == [2, 2, 2]
        print("ok", dist.rank(), flush=True)
    """)
    status, text = torchrun(path)
    assert status == 0 and text.count("ok") == 2, text
    assert text.count("error[distributed.fork.end]") == 2, text


TORCH = """
    import os, sys
    import torch
    import torch.distributed as td
    rank = os.environ.get("OMPI_COMM_WORLD_RANK", os.environ.get("RANK"))
    if "RANK" in os.environ:
        td.init_process_group("gloo")
    else:
        td.init_process_group("gloo", init_method=f"file://{sys.argv[1]}/store", rank=int(rank), world_size=2)
    dist.init()
    ours, theirs = weft.ones((3,)), torch.ones(3)
    works = [dist.all_reduce(ours, async_op=True), td.all_reduce(theirs, async_op=True)]
    works[1].wait()
    assert works[0].wait().tolist() == theirs.tolist() == [2, 2, 2]
    td.destroy_process_group()
    assert dist.all_reduce(weft.ones((3,))).tolist() == [2, 2, 2]
    print("ok", rank, flush=True)
"""


@pytest.mark.parametrize(
    "launch",
    [
        pytest.param(lambda *args: mpirun(2, *args, seconds=200), marks=needs_mpi, id="mpirun"),
        pytest.param(torchrun, marks=whole_torchrun, id="torchrun"),
    ],
)
def test_torch_distributed_beside(program, tmp_path, launch):  # noqa: F811
    pytest.importorskip("torch")
    status, text = launch(program(TORCH), tmp_path)
    assert status == 0 and text.count("ok") == 2, text
