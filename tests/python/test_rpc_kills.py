# SPDX-License-Identifier: Apache-2.0
"""Clients and servers of simulated VTAs that die by SIGKILL at random moments, and eight clients at once."""

import random
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import weft
from processes import computed, computes
from test_rpc import ENVIRONMENT, Served, rpc, until
from weft.vta import op

pytestmark = pytest.mark.targets("vta")
SEED = 20

CLIENT = """
import sys, numpy as np, weft, weft.rpc
remote = weft.rpc.connect("127.0.0.1", int(sys.argv[1]))
device = remote.device("vta")
remote.upload(sys.argv[2])
f = remote.load_module("product.weft-mod")
rng = np.random.default_rng(int(sys.argv[3]))
a, b = (rng.integers(-128, 128, (64, 64)).astype(np.int8) for _ in range(2))
print("ready", flush=True)
while True:
    A, B = weft.asarray(a, device=device), weft.asarray(b, device=device)
    C = weft.zeros((64, 64), dtype="int8", device=device)
    f["main"](A, B, C)
    big = weft.asarray(np.zeros(1 << 20, np.int8), device=device)
    assert np.array_equal(C.numpy(), ((a.astype(np.int32) @ b) >> 4).astype(np.int8))
"""


@pytest.fixture(scope="module")
def product(tmp_path_factory):
    path = tmp_path_factory.mktemp("vta") / "product.weft-mod"
    weft.build(op.matmul(64, 64, 64, shift=4), target="vta").save(path)
    return path


def work(remote, path, rng, rounds):
    """Products of this connection's own numbers; how many were right."""
    device = remote.device("vta")
    remote.upload(path)
    f = remote.load_module("product.weft-mod")
    for _ in range(rounds):
        a, b = (rng.integers(-128, 128, (64, 64)).astype(np.int8) for _ in range(2))
        arrays = [weft.asarray(x, device=device) for x in (a, b, np.zeros((64, 64), np.int8))]
        f["main"](*arrays)
        np.testing.assert_array_equal(
            arrays[2].numpy(), ((a.astype(np.int32) @ b.astype(np.int32)) >> 4).astype(np.int8)
        )
    return rounds


def test_eight_clients_at_once_each_with_a_machine_of_its_own(product):
    with rpc.Server("vta", port=0) as server:
        done, failures = [], []

        def client(seed):
            try:
                remote = rpc.connect("127.0.0.1", server.port, deadline=200)
                done.append(work(remote, product, np.random.default_rng(seed), 20))
                assert remote.stats()["launches"] == 20  # of this connection's machine alone
            except Exception as error:  # noqa: BLE001
                failures.append(error)

        threads = [threading.Thread(target=client, args=(seed,)) for seed in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures and done == [20] * 8
        assert until(lambda: server.sessions == 0 and server.held_bytes == 0)


def test_clients_killed_at_random_moments_leave_nothing_behind(product):
    rng = random.Random(SEED)
    with rpc.Server("vta", port=0) as server:
        clients = [
            subprocess.Popen(
                [sys.executable, "-c", CLIENT, str(server.port), str(product), str(seed)],
                env=ENVIRONMENT,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
            for seed in range(6)
        ]
        for child in clients:
            assert child.stdout.readline() == b"ready\n", child.stderr.read()
        for child in clients:
            time.sleep(rng.uniform(0, 0.05))
            assert child.poll() is None, child.communicate()[1]  # its own answers were right so far
            child.send_signal(signal.SIGKILL)
        for child in clients:
            child.communicate(timeout=500)
        assert until(lambda: server.sessions == 0 and server.held_bytes == 0)
        remote = rpc.connect("127.0.0.1", server.port)
        assert work(remote, product, np.random.default_rng(SEED), 3) == 3


def test_servers_killed_at_random_moments_are_errors_in_time(product):
    rng = random.Random(SEED)
    for seed in range(3):
        served = Served("--device", "vta")
        remote = rpc.connect("127.0.0.1", served.port, deadline=100, run_deadline=100)
        timer = threading.Timer(rng.uniform(0, 0.15), served.process.kill)
        timer.start()
        start = time.time()
        with pytest.raises(weft.Error) as lost:
            work(remote, product, np.random.default_rng(seed), 1_000_000)
        assert lost.value.code == "rpc.lost", lost.value
        assert time.time() - start < 300  # no deadline of its own
        served.process.communicate(timeout=500)


SPIN = """
@T.prim_func
def main(A: T.Buffer((1,), "int32")):
    for i in range(1000000000):
        with T.block("A"):
            v = T.axis.reduce(1000000000, i)
            A[0] = A[0] + 1
"""


def test_the_log_says_what_was_given_up(tmp_path):
    weft.build(weft.script.from_source(SPIN), target="ref").save(tmp_path / "spin.weft-mod")
    client = """
import sys, weft, weft.rpc
remote = weft.rpc.connect("127.0.0.1", int(sys.argv[1]))
remote.upload(sys.argv[2])
f = remote.load_module("spin.weft-mod")
a = weft.zeros((1,), dtype="int32", device=remote.device("ref"))
print("ready", flush=True)
f["main"](a)
"""
    with Served("--device", "ref") as served:
        child = subprocess.Popen(
            [sys.executable, "-c", client, str(served.port), str(tmp_path / "spin.weft-mod")],
            env=ENVIRONMENT,
            stdout=subprocess.PIPE,
        )
        before = computed(served.process)
        assert child.stdout.readline() == b"ready\n"
        computes(served.process, before)  # the loop, which takes minutes
        assert child.poll() is None
        child.kill()
        child.communicate(timeout=500)
        log = served.close()
    assert "rpc.cancelled" in log and "its work was given up" in log


def test_no_folder_for_a_configuration(tmp_path):
    with Served("--device", "vta", TMPDIR=str(tmp_path / "absent")) as served:
        remote = rpc.connect("127.0.0.1", served.port)
        with pytest.raises(weft.Error) as caught:
            remote.reconfigure({"TARGET": "sim"})
        assert caught.value.code == "rpc.reconfigure.file"
        assert "cannot make a folder like" in str(caught.value)
