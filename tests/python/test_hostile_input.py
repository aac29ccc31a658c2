# SPDX-License-Identifier: Apache-2.0
"""Files, sequences and numbers that would take all memory, all time or the process; first uses from several threads."""

import io
import os
import struct
import subprocess
import sys
import zipfile

import numpy as np
import pytest
import weft
from weft.tuning.database import Database


def refused(code, f, *parts):
    with pytest.raises(weft.Error) as caught:
        f()
    assert caught.value.code == code, caught.value
    for part in parts:
        assert part in str(caught.value), caught.value


@pytest.mark.parametrize("version", [2, 3])
def test_npy_headers_have_a_limit(tmp_path, version):
    text = b"{'descr': '<f4', 'fortran_order': False, 'shape': (" + b"1," * 200000 + b")}"
    path = tmp_path / "a.npy"
    path.write_bytes(b"\x93NUMPY" + bytes([version, 0]) + struct.pack("<I", len(text)) + text)
    refused("io.npy.header", lambda: weft.load_arrays(path), str(len(text)), "at most 65536")
    np.save(path, np.zeros((1,) * 32, np.float32))  # the longest that NumPy writes
    assert weft.load_arrays(path).shape == (1,) * 32


def test_archives_have_a_limit(tmp_path):
    path = tmp_path / "a.npz"
    np.savez_compressed(path, a=np.zeros(1 << 20, np.uint8), b=np.zeros(1 << 20, np.uint8))
    assert path.stat().st_size < 10000
    both = weft.load_arrays(path)
    assert sorted(both) == ["a", "b"] and both["b"].size == 1 << 20
    refused("io.npz.limit", lambda: weft.load_arrays(path, limit=1 << 20), "a.npy", "limit=bytes")
    refused("io.npz.limit", lambda: weft.load_arrays(path, limit=3 << 19), "b.npy")
    assert weft.load_arrays(path, limit=(2 << 20) + 256)["a"].size == 1 << 20


def test_an_archive_that_states_a_small_size(tmp_path):
    buffer = io.BytesIO()
    np.save(buffer, np.zeros(1 << 22, np.uint8))
    path = tmp_path / "a.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.npy", buffer.getvalue())
    raw = path.read_bytes()
    stated = struct.pack("<I", len(buffer.getvalue()))
    path.write_bytes(raw.replace(stated, struct.pack("<I", 256)))
    with pytest.raises(weft.IOError) as caught:
        weft.load_arrays(path, limit=1 << 20)
    assert caught.value.code in ("io.npz.damaged", "io.npy.truncated")


def test_sequences_that_contain_themselves():
    endless = [1.0]
    endless[0] = endless
    refused("array.asarray.depth", lambda: weft.asarray(endless), "deeper than 64", "itself")
    pair = ([], [])
    pair[0].append(pair[1])
    pair[1].append(pair[0])
    refused("array.asarray.depth", lambda: weft.asarray(pair))
    deep = 1.0
    for _ in range(64):
        deep = [deep]
    assert weft.asarray(deep).shape == (1,) * 64
    refused("array.asarray.depth", lambda: weft.asarray([deep]))


@pytest.mark.parametrize("axis", [2**31, 2**32, 2**32 + 1, -(2**32), -(2**31) - 1, 2**62])
def test_axes_beyond_32_bits_are_not_cut_off(axis):
    x = weft.ones((3, 4))
    calls = [
        lambda: x.sum(axis=axis),
        lambda: weft.sum(x, axis=(axis,)),
        lambda: weft.max(x, axis=axis),
        lambda: weft.squeeze(weft.ones((1, 3)), axis=axis),
        lambda: weft.flip(x, axis=axis),
        lambda: weft.permute_dims(x, (axis, 0)),
        lambda: x.transpose(axis, 1),
        lambda: weft.linalg.vector_norm(x, axis=axis),
        lambda: weft.Tensor(x).sum(axis=axis),
        lambda: weft.compile(lambda t: t.sum(axis=axis))(x),
    ]
    for call in calls:
        with pytest.raises(weft.IndexError) as caught:
            call()
        assert caught.value.code == "array.axis.range" and str(axis) in caught.value.message


# What runs in a process of its own, because a failure is a hang or a crash.
THREADS = """
import threading, weft
x = weft.ones((4,))
gate = threading.Barrier(8)
def work(copy):
    gate.wait()
    assert weft.asarray(x).numpy(copy=copy).sum() == 4
threads = [threading.Thread(target=work, args=(i % 2 == 0 or None,)) for i in range(8)]
for t in threads: t.start()
for t in threads: t.join()
"""


FORK = """
import os, weft
x = weft.ones((4,), device="opencl:0")
child = os.fork()
if child == 0:
    try:
        x.numpy()
    except weft.DeviceError as error:
        os._exit(7 if error.code == "opencl.fork" and "spawn" in str(error) else 8)
    os._exit(9)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
assert x.numpy().sum() == 4
"""


def run_alone(text, seconds):
    return subprocess.run(
        [sys.executable, "-c", text],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
        capture_output=True,
        text=True,
        timeout=seconds,
    )


def test_the_first_numpy_from_eight_threads():
    for _ in range(3):
        done = run_alone(THREADS, 60)
        assert done.returncode == 0, done.stderr


@pytest.mark.skipif(not weft.device("opencl:0").available, reason="no OpenCL device")
def test_a_forked_child_does_not_wait_for_the_parents_device():
    done = run_alone(FORK, 60)
    assert done.returncode == 0, done.stderr


def test_damaged_databases_are_refused_at_once(tmp_path):
    path = tmp_path / "tune.db"
    Database(path).close()
    good = path.read_bytes()
    rng = np.random.default_rng(3)
    for _ in range(60):
        damaged = bytearray(good)
        for at in rng.integers(0, len(good), 40):
            damaged[at] ^= int(rng.integers(1, 256))
        path.write_bytes(damaged)
        for beside in tmp_path.glob("tune.db-*"):
            beside.unlink()
        try:
            opened = Database(path)
            opened.trials("w", "cpu")
            opened.close()
        except weft.Error as error:
            assert error.code.startswith("tune.database."), error


def test_a_database_that_another_process_holds(tmp_path, monkeypatch):
    import sqlite3

    from weft.tuning import database

    monkeypatch.setattr(database, "_PATIENCE", 0.1)
    path = tmp_path / "tune.db"
    holder = sqlite3.connect(path)
    holder.execute("begin exclusive")
    refused("tune.database.busy", lambda: Database(path), "another process")
    holder.close()
