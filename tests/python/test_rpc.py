# SPDX-License-Identifier: Apache-2.0
"""Remote devices: `weft serve` as another process, and clients that are killed, lie or leave."""

import gc
import json
import os
import pathlib
import re
import signal
import socket
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

ROOT = pathlib.Path(__file__).resolve().parents[2]
PEM = (ROOT / "tests/unit/rpc_test_certificate.h").read_text()
CERTIFICATE, KEY = re.findall(r'R"\((-----BEGIN.*?)\)"', PEM, re.S)
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
CONFIG = {
    "TARGET": "sim",
    "HW_VER": "0.0.1",
    "LOG_INP_WIDTH": 3,
    "LOG_WGT_WIDTH": 3,
    "LOG_ACC_WIDTH": 5,
    "LOG_BATCH": 1,
    "LOG_BLOCK": 4,
    "LOG_UOP_BUFF_SIZE": 15,
    "LOG_INP_BUFF_SIZE": 15,
    "LOG_WGT_BUFF_SIZE": 18,
    "LOG_ACC_BUFF_SIZE": 17,
}
ENVIRONMENT.pop("WEFT_RPC_KEY", None)


@T.prim_func
def double(A: T.Buffer((256,), "float32"), B: T.Buffer((256,), "float32")):
    for i in range(256):
        with T.block("B"):
            vi = T.axis.remap("S", [i])
            B[vi] = A[vi] * T.float32(2)


@T.prim_func
def slow(A: T.Buffer((16,), "int32")):
    for i, j in T.grid(16, 100000000):
        with T.block("A"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                A[vi] = 0
            A[vi] = (A[vi] * 3 + T.Cast("int32", vj)) % 65521


class Served:
    """A process running `weft serve`; .log is what it wrote to standard error, after close()."""

    def __init__(self, *arguments, key="", **environment):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "weft", "serve", "--port", "0", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**ENVIRONMENT, **({"WEFT_RPC_KEY": key} if key else {}), **environment},
        )
        self.line = self.process.stdout.readline()
        found = re.search(r":(\d+) ", self.line)
        assert found, self.process.stderr.read()
        self.port, self.log = int(found.group(1)), None

    def close(self):
        if self.log is None:
            self.process.terminate()
            self.log = self.process.communicate(timeout=500)[1]
        return self.log

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()


def refused(f):
    with pytest.raises(weft.Error) as caught:
        f()
    return caught.value


def until(condition, seconds=60):
    end = time.time() + seconds
    while time.time() < end:
        if condition():
            return True
        time.sleep(0.02)
    return False


def module_file(tmp_path, program, target="cpu", name="m.weft-mod"):
    weft.build(program, target=target).save(tmp_path / name)
    return tmp_path / name


@pytest.mark.parametrize("target", ["cpu", "ref", "c"])
def test_arrays_and_modules_of_another_process(rng, tmp_path, target):
    x = rng.random(256, np.float32)
    with Served("--device", target, key="loom and shuttle of steel") as served:
        remote = rpc.connect("127.0.0.1", served.port, key="loom and shuttle of steel")
        dev = remote.device(target)
        assert dev.name.startswith(f"rpc:{target}@127.0.0.1:") and remote.device() is dev
        a = weft.asarray(x, device=dev)
        b = weft.zeros((256,), dtype="float32", device=dev)
        assert a.device == dev and np.array_equal(a.numpy(), x)
        assert np.array_equal(a.to(weft.device("cpu")).numpy(), x)
        # A local module on remote arrays, then the uploaded module.
        weft.build(double, target=target)["double"](a, b)
        assert np.array_equal(b.numpy(), 2 * x)
        path = module_file(tmp_path, double, target)
        remote.upload(path)
        f = remote.load_module(path)
        assert f.functions == ["double"]
        c = weft.zeros((256,), dtype="float32", device=dev)
        f["double"](a, c)
        assert np.array_equal(c.numpy(), 2 * x)
        result = f.time_evaluator("double", number=2, repeat=3)(a, c)
        assert len(result.results) == 3 and result.mean > 0
        # Milliseconds: 61 s for a sample would be refused.
        assert f.time_evaluator("double", number=1, repeat=1, min_repeat_ms=61)(a, c).mean > 0
        stats = remote.stats()
        assert stats["rpc.trips"] > 5 and stats["bytes.rpc.written"] >= 4 * 256
        # What the server refuses arrives as if it had happened here.
        wrong = refused(lambda: f["double"](a, weft.zeros((255,), dtype="float32", device=dev)))
        assert isinstance(wrong, weft.ShapeError) and wrong.code.startswith("call.")
        assert refused(lambda: f["triple"](a)).code == "module.function.unknown"
        assert refused(lambda: remote.device("vta")).code == "rpc.device.unknown"
        local = weft.zeros((256,), dtype="float32")
        mixed = refused(lambda: f["double"](a, local))
        assert isinstance(mixed, weft.DeviceError) and mixed.code == "rpc.device.mixed"
        del remote, dev, a, b, c, f, wrong, mixed
        gc.collect()  # tracebacks of the refusals held them too
    log = served.close()
    assert "connected" in log and "closed" in log and served.process.returncode == 0


@pytest.mark.targets("vta")
def test_simulators_count_cycles_and_take_configurations(tmp_path):
    with Served("--device", "vta") as served:
        remote = rpc.connect("127.0.0.1", served.port)
        batch = remote.device("vta").limits["batch"]
        remote.reconfigure("4x8x8")
        assert (batch, remote.device("vta").limits["batch"]) == (1, 4)
        missing = refused(lambda: remote.reconfigure({"LOG_BATCH": 0}))
        assert missing.code == "vta.config.missing" and '"TARGET"' in missing.message
        (tmp_path / "vta_config.json").write_text(json.dumps(CONFIG))
        for config in (CONFIG, tmp_path / "vta_config.json", json.dumps(CONFIG)):
            remote.reconfigure("4x8x8")
            remote.reconfigure(config)
            assert remote.device("vta").limits["batch"] == 2
        assert "/tmp" not in remote.device().name
        remote.program()
        hostile = refused(lambda: remote.reconfigure("config=/etc/passwd"))
        assert hostile.code == "rpc.reconfigure.path" and "file of the server" in hostile.message
        assert refused(lambda: remote.reconfigure("../../etc/passwd")).code.startswith("rpc.")
        assert refused(lambda: remote.program(b"bits")).code == "rpc.program.simulator"
        held = weft.zeros((8,), dtype="int8", device=remote.device())
        busy = refused(lambda: remote.reconfigure("4x8x8"))
        assert busy.code == "rpc.reconfigure.busy" and "1 arrays" in busy.message
        assert held.size == 8
    assert "rpc.reconfigure.path" in served.close()


def test_compilers_files_and_cards_are_not_a_clients_to_choose(tmp_path):
    mark = tmp_path / "mark"
    with Served("--device", "c") as served:
        remote = rpc.connect("127.0.0.1", served.port)
        options = [
            "cc=bash",
            f"cc=bash,flags=-c touch${{IFS}}{mark.name}",
            "flags=-O0",
            "library=1",
        ]
        for option in (*options, "vector_bytes=16", "3", "{}"):
            error = refused(lambda option=option: remote.reconfigure(option))
            assert error.code == "rpc.reconfigure.option", (option, error)
        assert refused(lambda: remote.reconfigure("cc=bash")).message.startswith('the option "cc"')
        assert not mark.exists()
    with Served("--device", "qpu") as served:
        remote = rpc.connect("127.0.0.1", served.port)
        remote.reconfigure("qpus=4")
        for option in ("hw", "memory=1024", "threads=12"):
            code = refused(lambda option=option: remote.reconfigure(option)).code
            assert code == "rpc.reconfigure.option", option
    with Served("--device", "vta") as served:
        remote = rpc.connect("127.0.0.1", served.port)
        for option in ("hw", "hw=1", "bitstream=x", "memory=68719476736", "timing=x", "debug=2"):
            code = refused(lambda option=option: remote.reconfigure(option)).code
            assert code == "rpc.reconfigure.option", option


def test_a_server_of_named_modules(tmp_path):
    path = module_file(tmp_path, double, "cpu", "double.weft-mod")
    with Served("--device", "cpu", "--module", str(path)) as served:
        remote = rpc.connect("127.0.0.1", served.port)
        error = refused(lambda: remote.upload(path))
        assert error.code == "rpc.modules.only" and "double.weft-mod" in str(error)
        a = weft.asarray(np.ones(256, np.float32), device=remote.device())
        b = weft.zeros((256,), dtype="float32", device=remote.device())
        remote.load_module("double.weft-mod")["double"](a, b)
        assert np.array_equal(b.numpy(), np.full(256, 2, np.float32))
        assert refused(lambda: weft.build(double, target="cpu")["double"](a, b)).code == (
            "rpc.modules.only"
        )
    (tmp_path / "other").mkdir()
    twin = module_file(tmp_path / "other", double, "cpu", "double.weft-mod")
    error = refused(lambda: rpc.Server("cpu", port=0, modules=[path, twin]))
    assert error.code == "rpc.modules.name" and '"double.weft-mod"' in error.message
    (tmp_path / "bad").write_bytes(b"no module")
    error = refused(lambda: rpc.Server("cpu", port=0, modules=[tmp_path / "bad"]))
    assert error.code == "module.file.foreign"


def test_the_key_is_needed():
    with Served("--device", "cpu", key="the right key, long enough") as served:
        for key in ("", "wrong", "the right key, long enoug", "the right key, long enough "):
            error = refused(lambda: rpc.connect("127.0.0.1", served.port, key=key))
            assert error.code == "rpc.key" and "long" not in error.message
        assert (
            rpc.connect("127.0.0.1", served.port, key="the right key, long enough")
            .device()
            .available
        )
    assert served.close().count("rpc.key") == 4


def test_key_file_and_tls(tmp_path):
    (tmp_path / "cert.pem").write_text(CERTIFICATE)
    (tmp_path / "key.pem").write_text(KEY)
    (tmp_path / "key").write_text("the key of the file\n")
    options = ["--device", "cpu", "--key-file", str(tmp_path / "key")]
    tls = ["--tls-cert", str(tmp_path / "cert.pem"), "--tls-key", str(tmp_path / "key.pem")]
    with Served(*options, *tls, "--host", "0.0.0.0") as served:
        assert "with a key, TLS" in served.line
        remote = rpc.connect(
            "localhost", served.port, key="the key of the file", tls_ca=CERTIFICATE
        )
        x = np.arange(100, dtype=np.int32)
        assert np.array_equal(weft.asarray(x, device=remote.device()).numpy(), x)
        plain = refused(
            lambda: rpc.connect("localhost", served.port, key="the key of the file", deadline=2)
        )
        assert plain.code in ("rpc.connect", "rpc.lost", "rpc.deadline")
    # Reachable from other hosts without both: no server.
    for missing in ([*tls], options[2:]):
        done = subprocess.run(
            [sys.executable, "-m", "weft", "serve", "--device", "cpu", "--host", "0.0.0.0"]
            + ["--port", "0", *missing],
            env=ENVIRONMENT,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 1 and "error[rpc.bind.open]" in done.stderr
        assert done.stdout == ""
    assert refused(lambda: rpc.Server("cpu", port=0, tls_cert=CERTIFICATE)).code == "rpc.tls.pair"
    assert refused(lambda: rpc.Server("cpu", port=0, tls_key="/no/such")).code == "rpc.tls.file"
    assert refused(lambda: rpc.Server("loom", port=0)).code == "target.unknown"


def test_hostile_names_and_sizes(tmp_path):
    with Served("--device", "cpu", "--session-bytes", str(1 << 20)) as served:
        remote = rpc.connect("127.0.0.1", served.port)
        for name in ("../evil", "/etc/passwd", "a/b", ".hidden", "", "x" * 129, "a\0b", "a\nb"):
            with pytest.raises(weft.Error) as caught:
                remote._session.upload(name, b"x")
            assert caught.value.code == "rpc.file.name", name
        assert refused(lambda: remote.load_module("nothing")).code == "rpc.file.unknown"
        remote.upload("short", b"WEFTMOD\n")
        assert refused(lambda: remote.load_module("short")).code.startswith("module.file")
        much = refused(lambda: weft.zeros((1 << 20,), dtype="float32", device=remote.device()))
        assert isinstance(much, weft.OutOfMemoryError) and much.code == "rpc.limit.bytes"
        # After all that the connection still works.
        assert weft.zeros((4,), device=remote.device()).numpy().tolist() == [0, 0, 0, 0]
        with pytest.raises(weft.Error) as caught:
            remote.upload("large", b"x" * (2 << 20))
        assert caught.value.code == "rpc.limit.bytes"
        assert "--session-bytes" in str(caught.value)
        # Nothing was sent: the connection still works.
        assert weft.zeros((4,), device=remote.device()).numpy().tolist() == [0, 0, 0, 0]
        assert rpc.connect("127.0.0.1", served.port).device().available
    log = served.close()
    assert "rpc.limit.bytes" in log


def test_streams_of_garbage_and_streams_cut_off(rng):
    with Served("--device", "cpu") as served:
        for size in (0, 1, 24, 100, 5000):
            with socket.create_connection(("127.0.0.1", served.port)) as s:
                s.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[:size] + rng.bytes(max(0, size - 24)))
        # A client that dies in the middle of an upload.
        child = subprocess.Popen(
            [
                sys.executable,
                "-c",
                "import sys, weft, weft.rpc, numpy\n"
                f"r = weft.rpc.connect('127.0.0.1', {served.port})\n"
                "print('up', flush=True)\n"
                "while True: weft.asarray(numpy.ones(1 << 22, 'float32'), device=r.device())\n",
            ],
            env=ENVIRONMENT,
            stdout=subprocess.PIPE,
        )
        assert child.stdout.readline() == b"up\n"
        time.sleep(0.2)
        child.kill()
        child.communicate(timeout=500)
        remote = rpc.connect("127.0.0.1", served.port)
        assert weft.ones((3,), device=remote.device()).numpy().sum() == 3


def test_what_a_killed_client_held_is_free_again():
    with rpc.Server("cpu", port=0) as server:
        child = subprocess.Popen(
            [
                sys.executable,
                "-c",
                "import sys, weft, weft.rpc\n"
                f"r = weft.rpc.connect('127.0.0.1', {server.port})\n"
                "x = weft.zeros((1000000,), dtype='float32', device=r.device())\n"
                "r.upload('file', b'x' * 500)\n"
                "print('holds', flush=True); sys.stdin.read()\n",
            ],
            env=ENVIRONMENT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert child.stdout.readline() == b"holds\n"
        assert server.held_bytes == 4000500 and server.sessions == 1
        child.send_signal(signal.SIGKILL)
        child.communicate(timeout=500)
        assert until(lambda: server.held_bytes == 0 and server.sessions == 0)
        assert any("connected" in line for line in server.log())


def test_clients_do_not_see_one_another(tmp_path):
    with Served("--device", "cpu") as served:
        one = rpc.connect("127.0.0.1", served.port)
        two = rpc.connect("127.0.0.1", served.port)
        assert one.device() != two.device()
        secret = weft.asarray(np.arange(256, dtype=np.float32), device=one.device())
        mine = weft.zeros((256,), dtype="float32", device=two.device())
        path = module_file(tmp_path, double)
        two.upload(path)
        f = two.load_module(path)
        assert refused(lambda: f["double"](secret, mine)).code == "rpc.device.mixed"
        with pytest.raises(weft.Error) as caught:
            weft.build(double)["double"](secret, mine)
        assert "device" in caught.value.code
        assert refused(lambda: one.load_module(path)).code == "rpc.file.unknown"
        assert mine.numpy().sum() == 0


def test_a_server_killed_during_a_call_is_an_error_in_time(tmp_path):
    path = module_file(tmp_path, slow)
    served = Served("--device", "cpu")
    remote = rpc.connect("127.0.0.1", served.port, deadline=100)
    remote.upload(path)
    f = remote.load_module(path)
    a = weft.zeros((16,), dtype="int32", device=remote.device())
    threading.Timer(0.5, served.process.kill).start()
    start = time.time()
    error = refused(lambda: f["slow"](a))
    assert error.code == "rpc.lost" and time.time() - start < 300  # no deadline of its own
    assert refused(lambda: a.numpy()).code == "rpc.lost"
    served.process.communicate(timeout=500)
    assert (
        refused(lambda: rpc.connect("127.0.0.1", served.port, deadline=0.5)).code == "rpc.connect"
    )


def test_a_server_that_stops_answering_is_an_error_in_time(tmp_path):
    path = module_file(tmp_path, slow)
    served = Served("--device", "cpu")
    remote = rpc.connect("127.0.0.1", served.port, deadline=60, run_deadline=1)
    remote.upload(path)
    f = remote.load_module(path)
    a = weft.zeros((16,), dtype="int32", device=remote.device())
    served.process.send_signal(signal.SIGSTOP)
    start = time.time()
    error = refused(lambda: f["slow"](a))
    assert error.code == "rpc.deadline" and 0.9 < time.time() - start < 300
    served.process.kill()
    served.process.communicate(timeout=500)
    assert refused(lambda: rpc.connect("a", 1, deadline=-1)).code == "rpc.deadline.value"


def test_local_is_the_same_thing(rng):
    remote = rpc.local("cpu")
    x = rng.random(256, np.float32)
    a = weft.asarray(x, device=remote.device("cpu"))
    b = weft.zeros((256,), dtype="float32", device=remote.device())
    weft.build(double)["double"](a, b)
    assert np.array_equal(b.numpy(), 2 * x)
    remote.upload("two", weft.build(double)._core.serialize())
    remote.load_module("two")(b, a)
    assert np.array_equal(a.numpy(), 4 * x)
    # The array outlives the connection's own object.
    del remote
    assert np.array_equal(b.numpy(), 2 * x)


def test_importing_weft_does_not_load_grpc():
    code = (
        "import weft, sys; maps = open('/proc/self/maps').read();"
        "assert '/_rpc.' not in maps and 'libgrpc' not in maps and 'libLLVM' not in maps;"
        "assert 'weft.rpc' not in sys.modules; weft.rpc; assert '/_rpc.' in open('/proc/self/maps').read()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=ENVIRONMENT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_a_remote_device_can_be_tuned_on(tmp_path):
    remote = rpc.local("cpu")
    sch = weft.tune(double, trials=3, database=tmp_path / "t.db", device=remote.device())
    a = weft.asarray(np.arange(256, dtype=np.float32))
    b = weft.zeros((256,), dtype="float32")
    weft.build(sch)["double"](a, b)
    assert np.array_equal(b.numpy(), 2 * a.numpy())
    # Times on the remote device are no times of the local one.
    weft.tune(double, trials=1, database=tmp_path / "t.db")
    import sqlite3

    rows = sqlite3.connect(tmp_path / "t.db").execute("select target from trials").fetchall()
    assert len(rows) == 4 and len({r[0] for r in rows}) == 2


def test_each_option_reaches_the_connection_and_the_server(monkeypatch):
    """No option is dropped, exchanged or replaced by a default on the way."""
    seen = []
    monkeypatch.setattr(rpc._rpc, "connect", lambda *args, **options: seen.append((args, options)))
    rpc.connect(
        "host", "7", key="k" * 16, tls_ca=CERTIFICATE, tls_name="name", deadline=1.5, run_deadline=2.5
    )  # fmt: skip
    wanted = dict(key="k" * 16, tls_ca=CERTIFICATE, tls_name="name", deadline=1.5, run_deadline=2.5)
    assert seen.pop() == (("host", 7), wanted)
    rpc.connect("host", 7, key=None)
    assert seen.pop() == (
        ("host", 7),
        dict(key="", tls_ca="", tls_name="", deadline=10.0, run_deadline=600.0),
    )
    monkeypatch.setattr(rpc._rpc, "Server", lambda *args, **options: seen.append((args, options)))
    rpc.Server("ref", "::1", 5, "s" * 16, CERTIFICATE, KEY, 1000, 3)
    (name, _), options = seen.pop()
    assert name == "ref" and options == dict(
        host="::1", port=5, key="s" * 16, tls_cert=CERTIFICATE, tls_key=KEY, session_bytes=1000, sessions=3, modules={}
    )  # fmt: skip


def test_parts_of_large_arrays_travel_in_several_pieces():
    """From the middle of an array, in both directions."""
    device = rpc.local("cpu").device()
    x = np.arange(1_500_000, dtype=np.float32)
    held, new = weft.asarray(x, device=device), np.arange(1_000_000, dtype=np.float32) % 1013
    for begin in (0, 1, 70_001, 500_000):
        part = held[begin : begin + new.size]
        assert np.array_equal(part.numpy(), x[begin : begin + new.size])
        part[...] = weft.asarray(new)
        x[begin : begin + new.size] = new
        assert np.array_equal(held.numpy(), x)
