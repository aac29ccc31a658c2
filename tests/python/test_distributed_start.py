# SPDX-License-Identifier: Apache-2.0
"""weft.distributed while ranks start: launchers and ranks that are killed, ranks that are missing; and calls that differ between ranks."""

import collections
import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import time
import types

import pytest
from launchers import (  # noqa: F401
    PACKAGE,
    environment,
    free_port,
    mpirun,
    mpirun_command,
    needs_mpi,
    needs_torchrun,
    program,
    run,
    torch_python,
    torchrun,
    torchrun_command,
    whole_torchrun,
)

from weft.distributed.environment import read_launch
from weft.distributed.failure import Watch
from weft.distributed.launcher import Launcher, process_ended

LAUNCHERS = [
    pytest.param("mpirun", marks=needs_mpi),
    pytest.param("torchrun", marks=whole_torchrun),
]


def command(launcher, ranks, *rest):
    if launcher == "mpirun":
        return mpirun_command(ranks, *rest)
    return torchrun_command(*rest, ranks=ranks)


def wait_for(condition):
    """Waits as long as a test may last at all."""
    begun = time.monotonic()
    while not condition():
        assert time.monotonic() - begun < 120
        time.sleep(0.05)


# Rank 1 comes to init() when the file `go` is there. What ranks see goes into files: nobody reads their output once the launcher is gone.
START = """
    import os, sys, time
    folder = sys.argv[1]
    rank = os.environ.get("OMPI_COMM_WORLD_RANK") or os.environ["RANK"]
    def write(name, text):
        with open(f"{folder}/{rank}", "w") as file:
            file.write(text)
        os.rename(f"{folder}/{rank}", f"{folder}/{name}.{rank}")
    write("began", str(os.getpid()))
    while rank == "1" and not os.path.exists(f"{folder}/go"):
        time.sleep(0.05)
    try:
        dist.init()
    except weft.DeviceError as problem:
        write("saw", f"{problem.code} {problem.message}")
        raise
    write("joined", "")
"""


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_ranks_end_when_their_launcher_is_killed_while_they_start(program, tmp_path, launcher):  # noqa: F811
    env = environment(PYTHONPATH=PACKAGE)
    start = command(launcher, 2, program(START), tmp_path)
    job = subprocess.Popen(start, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    began = [tmp_path / f"began.{rank}" for rank in (0, 1)]
    processes = []
    try:
        wait_for(lambda: all(path.exists() for path in began))
        processes = [int(path.read_text()) for path in began]
        job.kill()
        job.wait()
        wait_for(lambda: process_ended(processes[0]))  # waits for rank 1, which has not come
        (tmp_path / "go").touch()
        wait_for(lambda: process_ended(processes[1]))
    finally:
        for process in [p for p in processes if not process_ended(p)]:
            os.kill(process, signal.SIGKILL)
        job.kill()
        job.wait()
    assert "distributed.launcher" in (tmp_path / "saw.1").read_text()
    assert not (tmp_path / "joined.0").exists() and not (tmp_path / "joined.1").exists()


KILLED_EARLY = """
    import os, signal, sys, threading, time
    rank = os.environ.get("OMPI_COMM_WORLD_RANK") or os.environ["RANK"]
    folder = sys.argv[1]
    def tell(what):
        open(f"{folder}/{what}.{rank}", "w").close()
    def wait_for(what, ranks):
        while not all(os.path.exists(f"{folder}/{what}.{r}") for r in ranks):
            time.sleep(0.05)
    tell("began")
    if rank == "1":
        wait_for("watches", "02")
        os.kill(os.getpid(), signal.SIGKILL)
    def watches():  # init() has seen the ranks of this host, and watches them
        while "weft-distributed" not in [thread.name for thread in threading.enumerate()]:
            time.sleep(0.05)
        tell("watches")
    wait_for("began", "012")
    threading.Thread(target=watches, daemon=True).start()
    try:
        dist.init()
    except weft.DeviceError as problem:
        print(f"rank {rank} saw {problem.code}: {problem.message}", flush=True)
        raise
"""


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_a_rank_killed_before_init_is_named_on_every_other(program, tmp_path, launcher):  # noqa: F811
    start = command(launcher, 3, program(KILLED_EARLY), tmp_path)
    status, text = run(start, PYTHONPATH=PACKAGE)
    assert status != 0, text
    for rank in (0, 2):
        told = f"rank {rank} saw distributed.peer: another rank of the job failed: .*rank 1: its process"
        assert re.search(told, text), text


def test_a_failure_that_comes_while_a_library_loads_keeps_its_name(program, tmp_path):  # noqa: F811
    """What begins PyTorch's C++ makes a RuntimeError of any exception."""
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch/__init__.py").write_text("""
import time
print("loading", flush=True)
try:
    time.sleep(60)
except BaseException as problem:
    raise RuntimeError(str(problem)) from None
""")
    path = program("""
        try:
            dist.init(timeout=50)
        except weft.DeviceError as problem:
            print(problem.code, problem.message)
    """)
    variables = dict(RANK="0", WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT="9")
    env = environment(PYTHONPATH=f"{tmp_path}:{PACKAGE}", **variables)
    with subprocess.Popen([sys.executable, path], env=env, stdout=subprocess.PIPE, text=True) as rank:  # fmt: skip
        assert rank.stdout.readline() == "loading\n"
        rank.terminate()
        text = rank.stdout.read()
    assert "distributed.peer" in text and "the launcher ends the job (SIGTERM)" in text, text


MISSING = """
    import os
    try:
        dist.init(timeout=3)
    except weft.DeviceError as problem:
        print(problem.code, problem.message)
"""


@needs_torchrun
@pytest.mark.parametrize("port", ["taken", pytest.param("free", marks=whole_torchrun)])
def test_a_port_in_use_and_ranks_that_are_missing_are_named(program, port):  # noqa: F811
    with contextlib.closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        number = taken.getsockname()[1] if port == "taken" else free_port()
        variables = dict(RANK="0", WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(number))
        start = [torch_python(), str(program(MISSING))]
        _, text = run(start, PYTHONPATH=PACKAGE, **variables)
    assert f"distributed.start rank 0 of 2 cannot join the job at 127.0.0.1:{number}" in text, text


@needs_mpi
def test_ranks_that_do_not_come_are_named_after_the_time_of_init(program, tmp_path):  # noqa: F811
    path = program(f"""
        import os, time
        if os.environ["OMPI_COMM_WORLD_RANK"] == "1":
            while not os.path.exists({str(tmp_path / "seen")!r}):
                time.sleep(0.05)
        else:
            try:
                dist.init(timeout=1)
            except weft.DeviceError as problem:
                print(problem.code, problem.message, flush=True)
                open({str(tmp_path / "seen")!r}, "w").close()
                raise
    """)
    status, text = mpirun(2, path)
    assert "distributed.start rank 0 of 2 cannot join the job" in text and "after 1 s" in text, text


under = pytest.mark.parametrize(
    "launcher",
    [pytest.param("mpirun", marks=needs_mpi), pytest.param("torchrun", marks=needs_torchrun)],
)

# Ranks that catch the error leave the job and join again. Under torchrun no call that differs begins: Gloo would end the process of a rank that gets more than it awaits.
DIFFERENT = """
    import gc, sys
    FLOAT = weft.ones((16,))
    def several(r, n):
        works = [dist.reduce_scatter(weft.ones((3 + 3 * (r == 1),)), async_op=True) for _ in range(3)]
        works[0].wait()
    def other(call, x, **named):
        return lambda r, few: call(x if r == 1 else FLOAT, **named)
    calls = {
        "sizes": other(dist.all_reduce, weft.ones((17,))),
        "types": other(dist.broadcast, weft.ones((16,), dtype="int32")),
        "larger": other(dist.all_gather, weft.ones((200_000,))),
        "combined": other(dist.all_reduce, weft.ones((200_000,))),
        "smaller": lambda r, few: dist.all_gather(weft.ones((16 if r == 1 else 200_000,))),
        "means": lambda r, few: dist.all_reduce(FLOAT, "mean" if r == 1 else "sum"),
        "calls": lambda r, few: (dist.all_gather if r == 1 else dist.all_reduce)(FLOAT),
        "roots": lambda r, few: dist.broadcast(FLOAT, int(r == 1)),
        "barrier": lambda r, few: dist.all_reduce(weft.ones((1,))) if r == 1 else dist.barrier(),
        "empty": lambda r, few: dist.all_to_all(weft.ones((0 if r == 1 else 3,))),
        "group": lambda r, few: r == 0 or dist.all_reduce(weft.ones((200_000,)) if r == 1 else FLOAT, group=few),
        "asynchronous": several,
    }
    for name in sys.argv[1:]:
        dist.init()
        r = dist.rank()
        few = dist.new_group([2, 1])
        begun = [dist.all_reduce(weft.ones((n + 1,)), async_op=True) for n in range(70)]
        assert all(float(work.wait()[0]) == 3 for work in begun)
        try:
            calls[name](r, few)
            dist.barrier()
        except weft.DeviceError as problem:
            assert problem.code == "distributed.mismatch", problem
            assert "ranks have fallen out of step: " in problem.message and "rank 1 calls " in problem.message, problem
            if name == "sizes":
                assert "float32[16]; rank 1 calls all_reduce(sum) of float32[17]" in problem.message, problem
            print("told", name, flush=True)
        dist.shutdown()
        gc.collect()
        numbers = [float(i) for i in range(100_000)]  # where memory was given back, that MPI still writes
"""
CASES = (
    "larger group sizes types means calls combined smaller roots barrier empty asynchronous".split()
)


@under
def test_ranks_out_of_step_are_told_without_the_debug_mode(program, jobs, launcher):  # noqa: F811
    whole = launcher == "mpirun" or os.environ.get("WEFT_TEST_WHOLE")
    cases, times = CASES if whole else CASES[:3], 4 if launcher == "mpirun" else 1
    status, text = jobs(launcher, 3, program(DIFFERENT), *times * cases)
    assert status == 0, text
    assert all(text.count(f"told {name}") == 3 * times for name in cases), text


def test_calls_in_step_share_sums_that_are_used_again(monkeypatch):
    """Two ranks and their store in one process: halves of the sums are used again when both have left them, and one other call is seen in any turn."""
    from weft.distributed import instep
    from weft.distributed.late import Record

    monkeypatch.setattr(instep, "_SLOTS", 8), monkeypatch.setattr(instep, "_HALF", 4)
    for differs in (None, *range(40)):
        sums, waits, found = collections.Counter(), [], []
        board = types.SimpleNamespace(add=lambda name, n: sums.update({name: n}) or sums[name])
        late = types.SimpleNamespace(told=lambda record, number: found.append(number) or {})
        watch = types.SimpleNamespace(
            board=board, late=late, fail=lambda failure: RuntimeError(failure.text)
        )
        ranks = [
            instep.InStep("g", watch, Record("g", [0, 1], None), lambda done: waits.append(done()))
            for _ in range(2)
        ]
        order = sorted(
            range(80), key=lambda i: (i // 2 + (3 if i % 2 else 0), i)
        )  # rank 1 is 3 calls late
        with contextlib.suppress(RuntimeError):
            for i in order:
                shape = (i // 2 % 5 + (i % 2 and i // 2 == differs),)
                ranks[i % 2].check("all_reduce", "sum", "float32", shape)
        assert found == ([] if differs is None else [differs + 1]) and all(waits) and len(sums) <= 8


MESSAGES = """
    import sys
    sent, received = map(int, sys.argv[1:])
    dist.init()
    try:
        if dist.rank() == 0:
            work = dist.recv(weft.ones((3,)), 1, async_op=True)
            assert float(dist.recv(weft.ones((5,)), 1)[0]) == 2  # in the order of the calls
            assert float(work.wait()[0]) == 1
            dist.recv(weft.ones((received,)), 1)
        else:
            for array in (weft.ones((3,)), 2 * weft.ones((5,)), weft.ones((sent,))):
                dist.send(array, 0, async_op=True)
            dist.barrier()
    except weft.DeviceError as problem:
        assert problem.code == "distributed.mismatch", problem
        for text in (
            f"rank 0 receives {4 * received} bytes, rank 1 sends it {4 * sent}",
            f"message 3 from rank 1 to rank 0: rank 1 has {4 * sent} bytes; rank 0 has {4 * received} bytes",
        ):
            if text in problem.message:
                print("told", flush=True)
    dist.shutdown()
    dist.init()  # what was sent to the job before stays there
    if dist.rank() == 1:
        dist.send(7 * weft.ones((sent,)), 0)
    else:
        assert dist.recv(weft.ones((sent,)), 1).tolist() == [7] * sent
"""


@under
@pytest.mark.parametrize("sent, received", [(500_000, 4), (0, 1), (4, 500_000)])
def test_messages_of_another_size_are_refused(program, jobs, launcher, sent, received):  # noqa: F811
    if launcher == "torchrun" and not os.environ.get("WEFT_TEST_WHOLE") and sent != 4:
        pytest.skip("jobs of its own under torchrun are started by WEFT_TEST_WHOLE=1")
    status, text = jobs(launcher, 2, program(MESSAGES), sent, received)
    assert status == 0 and text.count("told") == 2, text


def test_the_launcher_of_a_rank_is_found_through_other_programs(tmp_path):
    """The parent of ranks is what started them with the launcher's variables, whatever is between."""
    program = tmp_path / "rank.py"
    program.write_text(f"""
import os, sys, time
sys.path.insert(0, {PACKAGE!r})
from weft.distributed.environment import read_launch
from weft.distributed.launcher import Launcher
launcher = Launcher(read_launch())
print(launcher.process, launcher.gone(), sorted(launcher.ranks()), flush=True)
""")
    variables = dict(PMI_RANK="1", PMI_SIZE="2", PMI_PORT="somewhere:1")
    script = f"{sys.executable} {program}; true"  # the shell stays between
    done = subprocess.run(
        ["sh", "-c", script], env=environment(**variables), capture_output=True, text=True
    )
    assert done.stdout.split() == [str(os.getpid()), "None", "[1]"], done


def test_launchers_that_cannot_be_known():
    launch = {"PMI_RANK": "0", "PMI_SIZE": "2"}
    by_hand = Launcher(read_launch(launch), launch)
    assert by_hand.process is None and by_hand.ranks() == {}
    assert by_hand.gone() is None and by_hand.gone_before() is None


def test_a_launcher_that_ended_before_the_first_look():
    ours, theirs = os.pipe()
    launch = {"PMI_RANK": "0", "PMI_SIZE": "2", "PMI_FD": str(ours)}
    launcher = Launcher(read_launch(launch), launch)
    assert launcher.gone_before() is None
    os.close(theirs)
    assert "closed its pipe" in launcher.gone_before()
    os.close(ours)
    with socket.socket() as silent:  # bound, so that nobody else listens there
        silent.bind(("127.0.0.1", 0))
        torch = {
            "RANK": "0",
            "WORLD_SIZE": "2",
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(silent.getsockname()[1]),
        }
        torch |= {"TORCHELASTIC_RUN_ID": "none", "TORCHELASTIC_USE_AGENT_STORE": "True"}
        assert "torchrun's store at 127.0.0.1" in Launcher(read_launch(torch), torch).gone_before()


@needs_mpi
@pytest.mark.parametrize("size", [100, 300_000])
def test_calls_in_several_groups_end_in_any_order(program, jobs, size):  # noqa: F811
    path = program("""
        import sys
        dist.init()
        groups = [dist.new_group([0, 1]), dist.new_group([1, 0])]
        x = weft.ones((int(sys.argv[1]),))
        for _ in range(20):
            works = [dist.all_reduce(x, group=group, async_op=True) for group in groups]
            for work in works if dist.rank() else works[::-1]:
                assert float(weft.sum(work.wait())) == 2 * x.size
        print("ok", dist.rank())
    """)
    status, text = jobs("mpirun", 2, path, size)
    assert status == 0 and text.count("ok") == 2, text


@pytest.mark.parametrize(
    "launcher",
    [pytest.param("mpirun", marks=needs_mpi), pytest.param("torchrun", marks=needs_torchrun)],
)
def test_a_forked_process_is_no_rank(program, jobs, launcher):  # noqa: F811
    path = program("""
        import multiprocessing, time
        dist.init()
        def wait(begun):
            begun.set()
            time.sleep(600)
        if dist.rank() == 1:
            context = multiprocessing.get_context("fork")
            begun = context.Event()
            child = context.Process(target=wait, args=(begun,))
            child.start()
            begun.wait()  # Python forgets a signal that comes while it forks
            child.terminate()
            child.join()
            print("child", child.exitcode, flush=True)
        assert float(dist.all_reduce(weft.ones((4,)))[0]) == 3
        print("ok", dist.rank())
    """)
    status, text = jobs(launcher, 3, path)
    assert status == 0 and text.count("ok") == 3, text
    assert "child -15" in text and "Traceback" not in text, text


@whole_torchrun
def test_collectives_may_wait_longer_than_init(program):  # noqa: F811
    path = program("""
        import time
        dist.init(timeout=20)
        group = dist.new_group([1, 0])
        if dist.rank() == 1:
            time.sleep(22)
        for among in (None, group):
            assert float(dist.all_reduce(weft.ones((4,)), group=among)[0]) == 2
        print("ok", dist.rank())
    """)
    status, text = run(torchrun_command(path), PYTHONPATH=PACKAGE)
    assert status == 0 and text.count("ok") == 2, text


@pytest.fixture
def watch():
    watch = Watch(read_launch({"PMI_RANK": "0", "PMI_SIZE": "2"}), lambda: None)
    yield watch
    watch.stop(left=False)


def test_a_watch_that_ends_leaves_the_process_as_it_was():
    def own(*_):
        pass

    launch = read_launch({"PMI_RANK": "0", "PMI_SIZE": "2"})
    first = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        for replaced in (False, True):
            hook = sys.excepthook
            watch = Watch(launch, lambda: None)
            assert signal.getsignal(signal.SIGTERM) == watch._ended_by_launcher
            assert sys.excepthook == watch._hook
            if replaced:  # the program's own since
                signal.signal(signal.SIGTERM, own)
                sys.excepthook = own
            watch.stop(left=False)
            assert not watch._thread.is_alive()
            now = signal.getsignal(signal.SIGTERM), sys.excepthook
            assert now == ((own, own) if replaced else (signal.SIG_DFL, hook))
            sys.excepthook = hook
        watch = Watch(launch, lambda: None)  # takes no signal that the program has taken
        assert signal.getsignal(signal.SIGTERM) == own
        watch.stop(left=False)
        assert signal.getsignal(signal.SIGTERM) == own
    finally:
        signal.signal(signal.SIGTERM, first)


def test_peers_are_the_launchers_until_they_have_introduced_themselves(watch):
    watch.launcher = types.SimpleNamespace(ranks=lambda: {0: os.getpid(), 1: os.getppid()}, gone=lambda: None)  # fmt: skip
    watch._see_peers()
    assert watch.peers == {1: os.getppid()} and watch.absent() is None
    watch.introduced({1: os.getpid()})
    watch._see_peers()
    assert watch.peers == {1: os.getpid()} and watch._ended_early() is None


def test_ranks_that_nothing_was_seen_of_are_named(watch):
    watch.size, watch._one_host = 4, True
    watch.launcher = types.SimpleNamespace(ranks=lambda: {2: os.getppid()}, gone=lambda: None)
    watch._see_peers()
    assert watch.absent() == "nothing was seen of rank 1, 3"
    assert "before its ranks have met in init(): nothing was seen of rank 1, 3" in watch._ended_early()  # fmt: skip
    watch._one_host = False  # ranks of other hosts are not seen
    assert watch.absent() is None and watch._ended_early().endswith("met in init()")
    watch.board = types.SimpleNamespace(absent=lambda size: [size - 1])
    assert watch.absent() == "nothing was seen of rank 3"
    watch.board = None


@whole_torchrun
def test_ranks_that_stop_within_init_are_waited_for_no_longer_than_it_says(program):  # noqa: F811
    """Both have come to the store and to Gloo; one then says nothing of itself."""
    path = program("""
        import os, threading
        from weft.distributed import gloo
        if os.environ["RANK"] == "1":
            gloo.Gloo.gather_values = lambda self, value: threading.Event().wait()
        try:
            dist.init(timeout=6)
        except weft.DeviceError as problem:
            print("ended", problem.code, flush=True)
            os._exit(0)  # the other rank's end is its own
    """)
    status, text = torchrun(path, seconds=200)
    assert text.count("ended distributed.start") + text.count("ended distributed.peer") == 2, text
    assert "ended distributed.start" in text, text
