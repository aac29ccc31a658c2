# SPDX-License-Identifier: Apache-2.0
"""Connections that die at any byte: a proxy between client and server cuts them, in either direction."""

import concurrent.futures
import json
import pathlib
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import weft
from present import remote_devices
from weft import script as T

rpc = remote_devices()

DEADLINE = 2.0  # of a life that may be cut


@T.prim_func
def double(A: T.Buffer((8192,), "int32"), B: T.Buffer((8192,), "int32")):
    for i in range(8192):
        with T.block("B"):
            vi = T.axis.remap("S", [i])
            B[vi] = A[vi] * 2


class Proxies:
    """The process of proxies: in this one, they would wait for the interpreter while a client waits for them."""

    def __init__(self):
        self.process = subprocess.Popen(
            [sys.executable, str(pathlib.Path(__file__).with_name("cutting_proxy.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.lock = threading.Lock()

    def ask(self, **command):
        with self.lock:
            print(json.dumps(command), file=self.process.stdin, flush=True)
            return json.loads(self.process.stdout.readline())

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.process.kill()
        self.process.communicate()


def work(port, module, data, deadline=120.0):
    """One life of a client; every answer that arrives is right."""
    remote = rpc.connect("127.0.0.1", port, deadline=deadline, run_deadline=deadline)
    a = weft.asarray(data, device=remote.device())
    b = weft.zeros((8192,), dtype="int32", device=remote.device())
    remote.upload("m", module)
    f = remote.load_module("m")
    f["double"](a, b)
    assert np.array_equal(b.numpy(), 2 * data)
    remote.stats()


def life(proxies, server_port, direction, limit, module, data):
    command = {"port": server_port, "direction": direction, "limit": limit, "reset": limit % 3 == 2}
    proxy = proxies.ask(**command)
    start = time.monotonic()
    try:
        work(proxy["port"], module, data, DEADLINE)
        return "finished", time.monotonic() - start
    except weft.Error as error:
        return error.code, time.monotonic() - start
    finally:
        proxies.ask(close=proxy["id"])


def settled(server):
    end = time.monotonic() + 60
    while time.monotonic() < end:
        if server.sessions == 0 and server.held_bytes == 0:
            return True
        time.sleep(0.02)
    return False


@pytest.mark.parametrize("direction", ["up", "down"])
def test_connections_that_die_at_any_byte(direction):
    rng = np.random.default_rng(5)
    data = rng.integers(-1000, 1000, 8192).astype(np.int32)
    module = weft.build(double, target="cpu")._core.serialize()
    with rpc.Server("cpu", port=0) as server, Proxies() as proxies:
        whole = proxies.ask(port=server.port, direction="up", limit=None, reset=False)
        work(whole["port"], module, data)
        total = proxies.ask(passed=whole["id"])[direction]
        proxies.ask(close=whole["id"])
        assert total > 32768 and settled(server)
        # Each of the first 200 bytes, where the greeting is; then anywhere, and the last bytes before the end.
        offsets = [*range(200), *map(int, rng.integers(200, total, 60)), total - 2, total - 1]
        codes = {}
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            for begin in range(0, len(offsets), 64):
                part = offsets[begin : begin + 64]
                lives = pool.map(
                    lambda n: life(proxies, server.port, direction, n, module, data), part
                )
                for offset, (code, seconds) in zip(part, lives, strict=True):
                    codes.setdefault(code, []).append(offset)
                    # Several calls may run into the deadline, one after another, before the cut is known.
                    assert seconds < 4 * DEADLINE + 60, (offset, code, seconds)
                # What the lost clients held is free, and others are served.
                assert settled(server), (server.sessions, server.held_bytes)
                work(server.port, module, data)
                assert settled(server)
        unexpected = set(codes) - {"rpc.connect", "rpc.lost", "rpc.deadline", "finished"}
        assert not unexpected, {code: codes[code] for code in unexpected}
        # Only the very end can be lost without anybody noticing: the farewell.
        assert all(offset > total - 400 for offset in codes.get("finished", [])), codes["finished"]
        assert len(codes.get("rpc.lost", [])) > 50
