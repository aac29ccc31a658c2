# SPDX-License-Identifier: Apache-2.0
"""Searches over several hosts that die and come back, and over workers of Ray."""

import importlib.util
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import types

import pytest
import weft
from launchers import free_port
from test_rpc import ENVIRONMENT
from weft import te
from weft.tuning import Host, RayWorker, fleet

SERVE = [sys.executable, "-m", "weft", "serve", "--device", "cpu", "--port"]


def program(n):
    a, b = te.placeholder((n, n), "float32", name="A"), te.placeholder((n, n), "float32", name="B")
    k = te.reduce_axis(n, name="k")
    c = te.compute((n, n), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    return te.create_prim_func([a, b, c])


def serve(port):
    process = subprocess.Popen(
        [*SERVE, str(port)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=ENVIRONMENT,
    )
    assert process.stdout.readline()
    return process


def rows(path):
    with sqlite3.connect(path) as db:
        return db.execute("select count(*) from trials").fetchone()[0]


@pytest.mark.parametrize("hosts", [1, 2])
def test_hosts_that_die_and_come_back_lose_no_row(tmp_path, hosts):
    numbers = [free_port() for _ in range(hosts)]
    served = {n: serve(n) for n in numbers}
    deaths, back = [], []

    def again(port):
        time.sleep(0.3)
        served[port] = serve(port)

    def kill(done, *rest):
        """After some of the trials one host is killed, another each time, and started again."""
        if done not in (3, 9, 15):
            return
        port = numbers[len(deaths) % hosts]
        served[port].send_signal(signal.SIGKILL)
        served[port].wait()
        deaths.append(port)
        back.append(threading.Thread(target=again, args=(port,)))
        back[-1].start()

    try:
        with pytest.warns(RuntimeWarning, match="is called again"):
            best = weft.tune(
                program(96),
                target="cpu",
                trials=24,
                device=[Host("127.0.0.1", n) for n in numbers],
                database=tmp_path / "t.db",
                progress=kill,
            )
    finally:
        for thread in back:
            thread.join()
        for process in served.values():
            process.kill()
            process.wait()
    assert len(deaths) == 3
    assert rows(tmp_path / "t.db") == 24
    assert isinstance(best, weft.Schedule)


def test_a_host_that_does_not_come_back_ends_the_search(tmp_path):
    port = free_port()
    process = serve(port)
    with pytest.raises(weft.Error) as caught, pytest.warns(RuntimeWarning, match="called again"):
        weft.tune(
            program(97),
            target="cpu",
            trials=500,
            device=[Host("127.0.0.1", port, patience=2)],
            database=tmp_path / "t.db",
            progress=lambda done, *rest: process.kill() if done == 2 else None,
        )
    process.wait()
    assert caught.value.code.startswith("rpc.")
    assert rows(tmp_path / "t.db") >= 2


def test_workers_of_ray(tmp_path):
    if importlib.util.find_spec("ray") is None:
        with pytest.raises(weft.DeviceError, match="ray cannot be imported") as caught:
            weft.tune(program(8), target="cpu", device=[RayWorker()], database=tmp_path / "t.db")
        assert caught.value.code == "tune.ray"
        pytest.skip("ray is not installed; without it the refusal was checked")
    import ray

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        best = weft.tune(
            program(64),
            target="cpu",
            trials=8,
            device=[RayWorker(), RayWorker()],
            database=tmp_path / "t.db",
            progress=False,
        )
        assert rows(tmp_path / "t.db") == 8 and isinstance(best, weft.Schedule)
    finally:
        ray.shutdown()


def test_a_worker_that_ends_is_named():
    class Gone(Exception):
        pass

    def get(answer):
        raise Gone("the actor died")

    own = fleet._RayMeasurer.__new__(fleet._RayMeasurer)
    own._ray = types.SimpleNamespace(get=get, exceptions=types.SimpleNamespace(RayError=Gone))
    with pytest.raises(weft.DeviceError, match="a Ray worker has ended: the actor died") as caught:
        own._call(None)
    assert caught.value.code == "tune.worker"


class Told(Host):
    """Says when it takes part."""

    came = threading.Event()

    def measurer(self, *work, **given):
        found = super().measurer(*work, **given)
        if self.device == "cpu":
            self.came.set()
        return found


def test_a_host_that_is_not_there_yet_takes_part_when_it_comes(tmp_path):
    """Of two hosts one is started while the search runs; where none answers, the search does not begin."""
    ports = [free_port(), free_port()]
    hosts = [Told("127.0.0.1", ports[0], "cpu"), Host("127.0.0.1", ports[1])]
    with pytest.raises(weft.Error) as caught:
        weft.tune(program(98), target="cpu", trials=2, device=hosts, database=tmp_path / "t.db")
    assert caught.value.code == "rpc.connect"
    served = [serve(ports[1])]

    def come(done, *rest):
        if done == 2:
            served.append(serve(ports[0]))
            assert Told.came.wait(60), "the host was not called again"

    try:
        with pytest.warns(RuntimeWarning, match=f"127.0.0.1:{ports[0]} is called again"):
            weft.tune(program(98), target="cpu", trials=6, device=hosts, database=tmp_path / "t.db", progress=come)  # fmt: skip
    finally:
        for process in served:
            process.kill()
            process.wait()
    assert len(served) == 2 and rows(tmp_path / "t.db") == 6
