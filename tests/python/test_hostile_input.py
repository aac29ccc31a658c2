# SPDX-License-Identifier: Apache-2.0
"""Files, sequences and numbers that would take all memory, all time or the process; first uses from several threads."""

import io
import json
import os
import struct
import subprocess
import sys
import warnings
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


def gguf_of(tensors, keys=()):
    """A GGUF file of tensors (name, shape, type, place) and 64 bytes, with keys of type uint8."""
    name = lambda s: struct.pack("<Q", len(s)) + s.encode()  # noqa: E731
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(keys))
    head += b"".join(name(k) + struct.pack("<IB", 0, 7) for k in keys)
    for label, shape, kind, place in tensors:
        head += name(label) + struct.pack("<I", len(shape)) + struct.pack(f"<{len(shape)}Q", *shape)
        head += struct.pack("<IQ", kind, place)
    return head + b"\0" * (-len(head) % 32) + bytes(range(64))


def safetensors_of(header, body=bytes(range(64))):
    text = header.encode()
    return struct.pack("<Q", len(text)) + text + body


ENTRY = '"{}":{{"dtype":"U8","shape":[{}],"data_offsets":[{},{}]}}'


@pytest.mark.parametrize("first, second, meet", [((0, 8), (8, 16), False), ((8, 16), (0, 8), False), ((0, 8), (7, 9), True), ((0, 64), (3, 4), True), ((5, 9), (5, 9), True), ((4, 4), (2, 8), False)])  # fmt: skip
def test_arrays_of_a_file_share_no_bytes(tmp_path, first, second, meet):
    """Otherwise a small file holds any number of large arrays."""
    entries = [ENTRY.format(n, e - b, b, e) for n, (b, e) in zip("ab", (first, second))]
    path = tmp_path / "a.safetensors"
    path.write_bytes(safetensors_of("{" + ",".join(entries) + "}"))
    other = tmp_path / "a.gguf"
    other.write_bytes(gguf_of([(n, [e - b], 24, b) for n, (b, e) in zip("ab", (first, second))]))
    for load, code in (
        (lambda: weft.load_arrays(path), "io.safetensors.range"),
        (lambda: weft.load_gguf(other)[0], "io.gguf.range"),
    ):
        if meet:
            refused(code, load, "where 'a' lies" if first <= second else "where 'b' lies")
        else:
            found = load()
            for n, (b, e) in zip("ab", (first, second)):
                assert found[n].numpy().tolist() == list(range(b, e))


def test_names_that_are_there_twice(tmp_path):
    """Two readers of such a file would see different arrays."""
    path = tmp_path / "a"
    path.write_bytes(safetensors_of("{" + ENTRY.format("a", 4, 0, 4) + "," + ENTRY.format("a", 4, 4, 8) + "}"))  # fmt: skip
    refused("io.safetensors.header", lambda: weft.load_arrays(path), "'a' is there twice")
    path.write_bytes(safetensors_of('{"a":{"dtype":"U8","shape":[4],"shape":[2],"data_offsets":[0,4]}}'))  # fmt: skip
    refused("io.safetensors.header", lambda: weft.load_arrays(path), "'shape' is there twice")
    path.write_bytes(gguf_of([], ["k", "k"]))
    refused("io.gguf.value", lambda: weft.load_gguf(path), "'k' twice")
    buffer = io.BytesIO()
    np.save(buffer, np.zeros(3))
    for names in (("a.npy", "a.npy"), ("a", "a.npy")):
        with zipfile.ZipFile(path, "w") as archive:
            for name in names:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    archive.writestr(name, buffer.getvalue())
        refused("io.npz.damaged", lambda: weft.load_arrays(path), "is there twice")


def test_extents_whose_product_is_zero(tmp_path):
    """Nothing has to be there for them, and no product of the others fits."""
    for shape in ((0, 1 << 40, 1 << 40), (1 << 62, 4, 0), (0, 1 << 64), (1 << 63, 0)):
        text = str({"descr": "<f4", "fortran_order": False, "shape": shape}).encode() + b"\n"
        npy = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text
        files = {"a.npy": npy}
        files["a.safetensors"] = safetensors_of(
            '{"a":{"dtype":"F32","shape":%s,"data_offsets":[0,0]}}' % list(shape)
        )
        if max(shape) < 1 << 64:
            files["a.gguf"] = gguf_of([("a", shape[::-1], 0, 0)])
        for name, raw in files.items():
            (tmp_path / name).write_bytes(raw)
            load = weft.load_gguf if name.endswith("gguf") else weft.load_arrays
            try:
                found = load(tmp_path / name)
            except weft.Error:
                continue
            found = found[0] if isinstance(found, tuple) else found
            found = found["a"] if isinstance(found, dict) else found
            assert found.shape == shape and found.numpy().size == 0


def test_truths_that_are_neither_0_nor_1(tmp_path):
    raw = bytes([0, 1, 2, 128, 255, 0])
    files = {
        "a.npy": b"\x93NUMPY\x01\x00v\x00" + b"{'descr': '|b1', 'fortran_order': False, 'shape': (6,)}".ljust(118) + raw,
        "a.safetensors": safetensors_of('{"a":{"dtype":"BOOL","shape":[6],"data_offsets":[0,6]}}', raw),
    }  # fmt: skip
    wanted = np.array([0, 1, 1, 1, 1, 0], bool)
    for name, whole in files.items():
        (tmp_path / name).write_bytes(whole)
        found = weft.load_arrays(tmp_path / name)
        x = found["a"] if isinstance(found, dict) else found
        assert x.numpy().tobytes() == wanted.tobytes()
        assert int(weft.sum(x)) == 4 and bool(weft.all(x == weft.asarray(wanted)))
        assert weft.logical_not(x).numpy().tolist() == (~wanted).tolist()
        assert x.astype("int32").numpy().tolist() == wanted.astype(int).tolist()


def test_a_file_that_shrinks_while_it_is_read(tmp_path, monkeypatch):
    """Nothing is mapped: the system would end the process."""
    from weft import gguf

    path = tmp_path / "a.gguf"
    n = 1 << 20
    path.write_bytes(gguf_of([("a", [n], 24, 0)]) + bytes(n))
    whole = weft.load_gguf(path)[0]["a"]
    assert whole.shape == (n,)
    found = gguf._placed

    def cut(*args):
        os.truncate(path, 4096)
        return found(*args)

    monkeypatch.setattr(gguf, "_placed", cut)
    refused("io.gguf.truncated", lambda: weft.load_gguf(path), "ends inside 'a'")


def test_an_archive_takes_little_more_than_its_arrays(tmp_path):
    """The bytes of an array are copied once, not at each step of reading it."""
    path = tmp_path / "a.npz"
    n = 256 << 20
    np.savez_compressed(path, a=np.zeros(n, np.uint8))
    program = f"""
import pathlib, re, weft
def peak():  # not of getrusage, which begins with the parent's
    return int(re.search("VmHWM:\\s+(\\d+)", pathlib.Path("/proc/self/status").read_text())[1]) << 10
before = peak()
x = weft.load_arrays({str(path)!r})
assert x["a"].shape == ({n},)
print((peak() - before) / {n})
"""
    done = run_alone(program, 120)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 2.6, done.stdout


ACTIVE = {
    "view": "create view trials as with recursive n(i) as (select 1 union all select i + 1 from n) "
    "select i as workload, i as target, i as candidate, i as seed, i as seconds, i as cycles, i as failure, i as trace from n",
    "trigger": "create trigger t after insert on meta begin delete from meta; end",
}  # fmt: skip


@pytest.mark.parametrize("kind", ACTIVE)
@pytest.mark.parametrize("exists", [False, True])
def test_databases_that_do_something_on_their_own(tmp_path, kind, exists):
    import sqlite3

    path = tmp_path / "tune.db"
    Database(path).close()
    file = sqlite3.connect(path)
    if kind == "view":
        file.execute("drop table trials")
    file.execute(ACTIVE[kind])
    file.commit()
    file.close()
    refused("tune.database.foreign", lambda: Database(path, exists=exists), kind, "tables only")


def row(**change):
    piece = {"file": "p", "starts": [0, 0], "shape": [2, 3]}
    return {"dtype": "float32", "shape": [2, 3], "pieces": [piece], **change}


def piece(**change):
    return row(pieces=[{"file": "p", "starts": [0, 0], "shape": [2, 3], **change}])


@pytest.mark.parametrize(
    "entry, said",
    [
        (row(), None),
        (row(dtype="save"), "index.json"),
        (row(dtype=3), "index.json"),
        (row(dtype="int32"), "holds \\(2, 3\\) of float32"),
        (row(shape=[2, 3.0]), "no extents"),
        (row(shape=[-2, -3]), "no extents"),
        (row(shape=[2, 3, 1]), "a piece"),
        (row(shape="23"), "no extents"),
        (row(shape=[1 << 40, 1 << 20]), "6 of"),
        (row(pieces=None), "index.json"),
        (row(pieces=[]), "0 of 6"),
        ({"dtype": "float32", "shape": [1 << 45], "pieces": [{"file": "p", "starts": [0], "shape": [1 << 45]}]}, "holds \\(2, 3\\)"),
        (piece(shape=[1, 3]), "and holds"),
        (piece(starts=[1, 0]), "a piece"),
        (piece(starts=[0]), "a piece"),
        (piece(file="../p"), "names the file"),
        (piece(file=7), "a file 7"),
        ({"shape": [2, 3], "pieces": []}, "dtype"),
        ([], "index.json"),
    ],
)  # fmt: skip
def test_indices_of_checkpoints_that_promise_what_is_not_there(tmp_path, entry, said):
    from weft.distributed.checkpoint import load_sharded

    weft.save_safetensors(tmp_path / "p", {"a": weft.ones((2, 3))})
    index = {"format": "weft.sharded", "version": 1, "metadata": None, "arrays": {"a": entry}}
    (tmp_path / "index.json").write_text(json.dumps(index))
    if said is None:
        assert load_sharded(tmp_path)[0]["a"].numpy().tolist() == [[1, 1, 1], [1, 1, 1]]
        return
    with pytest.raises(weft.IOError, match=said) as caught:
        load_sharded(tmp_path)
    assert caught.value.code == "distributed.checkpoint.load"
    (tmp_path / "index.json").write_text("[" * 100000)
    refused("distributed.checkpoint.load", lambda: load_sharded(tmp_path), "RecursionError")


def test_a_database_row_that_nests(tmp_path):
    path = tmp_path / "tune.db"
    base = Database(path)
    base._file.execute(
        "insert into trials values('w', 'cpu', ?, 1, 1.0, 0.0, null, null)", ("[" * 100000,)
    )
    refused("tune.database.damaged", lambda: base.trials("w", "cpu"))
    refused("tune.database.damaged", base.rows)
    base.close()


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("kind", ["i1", "i2", "u4", "i8", "f2", "f4", "f8", "c8", "c16"])
def test_arrays_in_either_order_of_bytes(tmp_path, kind, order):
    """The parts of a complex number are turned around one by one."""
    values = np.arange(1, 7).reshape(2, 3) * 3 + (2j * np.arange(6).reshape(2, 3) if kind[0] == "c" else 0)  # fmt: skip
    for stored in (values.astype(order + kind), np.asfortranarray(values.astype(order + kind))):
        np.save(tmp_path / "a.npy", stored)
        found = weft.load_arrays(tmp_path / "a.npy").numpy()
        assert found.dtype == np.dtype(kind) and np.array_equal(found, values)
