# SPDX-License-Identifier: Apache-2.0
"""Files of every format that weft reads, changed at random: each is read or refused with an error of weft, soon and within
bounded memory. WEFT_TEST_MUTATIONS=100000 tries so many of each format, WEFT_TEST_SEED others."""

import os
import resource
import struct
import time

import numpy as np
import pytest
import weft
from conftest import SEED
from test_gguf import text, written
from weft import _core, te
from weft.tuning.database import Database, Trial

COUNT = int(os.environ.get("WEFT_TEST_MUTATIONS", "400"))
LONGEST = 10.0  # seconds for one file
MEMORY = 2 << 30  # bytes that the process may grow by
PIECES = [
    b"\0", b"\xff", b"\xff" * 8, b"-1", b"99999999999999999999", b"1e999", b"{", b"[" * 40, b'"', b"\\u0000", b"null", b"(", b"'",
    struct.pack("<Q", 2**63), struct.pack("<Q", 2**64 - 1), struct.pack("<I", 2**31),
]  # fmt: skip


def mutated(raw, rng):
    out = bytearray(raw)
    for _ in range(rng.integers(1, 5)):
        at, n = int(rng.integers(0, len(out) + 1)), int(rng.integers(1, 12))
        kind = rng.integers(0, 7)  # no match statement: Python 3.9 reads this file
        if kind == 0 and at < len(out):
            out[at] = rng.integers(0, 256)
        elif kind == 1 and at < len(out):
            out[at] ^= 1 << rng.integers(0, 8)
        elif kind == 2:
            del out[at : at + n]
        elif kind == 3:
            out[at:at] = PIECES[rng.integers(0, len(PIECES))]
        elif kind == 4:
            piece = PIECES[rng.integers(0, len(PIECES))]
            out[at : at + len(piece)] = piece
        elif kind == 5:
            begin = int(rng.integers(0, len(out) + 1))
            out[at:at] = out[begin : begin + 4 * n]
        elif rng.integers(0, 4) == 0:
            del out[at:]
    return bytes(out)


def stored(save):
    def make(folder):
        path = folder / "whole"
        save(path)
        return path.read_bytes()

    return make


def loaded(load):
    def read(raw, folder):
        path = folder / "changed"
        path.write_bytes(raw)
        return load(path)

    return read


ARRAYS = {"a": np.arange(12, dtype="float32").reshape(3, 4), "b": np.array([True, False])}


def program():
    a = te.placeholder((16,), "float32", name="A")
    return te.create_prim_func([a, te.compute((16,), lambda i: a[i] * 2.0, name="B")])


def recorded(folder):
    s = weft.Schedule(program())
    (i,) = s.get_loops(s.get_block("B"))
    outer, inner = s.split(i, [None, 4])
    s.unroll(inner)
    return s.trace.as_json().encode()


def replayed(raw, folder):
    return weft.Schedule.replay(program(), decoded(raw))


def decoded(raw):
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw.decode("latin1")


def one_trial(path):
    base = Database(path)
    base.add("w", "cpu", 1, Trial({"sketch": "a", "knobs": {"x": 3}}, 1e-3, 5, None, "[]"))
    base.close()


def rows(path):
    base = Database(path)
    try:
        return base.rows()
    finally:
        base.close()


def gguf(folder):
    block = np.arange(18, dtype=np.uint8).tobytes()
    head = text("general.name") + struct.pack("<I", 8) + text("x")
    return written({"w": ((1, 32), 2, block), "v": ((4,), 0, b"\0" * 16)}, head, 1)


FORMATS = {
    "npy": (stored(lambda p: weft.save(p, weft.asarray(ARRAYS["a"]))), loaded(weft.load_arrays)),
    "npz": (stored(lambda p: weft.savez(p, **{k: weft.asarray(v) for k, v in ARRAYS.items()})), loaded(weft.load_arrays)),
    "safetensors": (stored(lambda p: weft.save_safetensors(p, {k: weft.asarray(v) for k, v in ARRAYS.items()}, {"by": "test"})), loaded(weft.load_safetensors)),
    "gguf": (gguf, loaded(weft.load_gguf)),
    "module": (stored(lambda p: weft.build(program(), target="ref").save(p)), loaded(weft.load)),
    "trace": (recorded, replayed),
    "database": (stored(one_trial), loaded(rows)),
    "T-script": (lambda folder: program().script().encode(), lambda raw, folder: weft.script.from_source(decoded(raw))),
}  # fmt: skip


@pytest.mark.parametrize("name", FORMATS)
def test_changed_files_are_read_or_refused(name, tmp_path):
    make, read = FORMATS[name]
    whole = make(tmp_path)
    read(whole, tmp_path)
    rng = np.random.default_rng([SEED, *name.encode()])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    accepted = refused = 0
    for _ in range(COUNT if name != "database" else COUNT // 4):
        raw = mutated(whole, rng)
        begin = time.process_time()  # whatever else the machine does
        try:
            read(raw, tmp_path)
            accepted += 1
        except weft.Error as error:
            assert error.code and not error.code.startswith("python."), raw
            refused += 1
        except Exception as error:
            raise AssertionError(f"{type(error).__name__} for {raw!r}") from error
        assert time.process_time() - begin < LONGEST, raw
    assert refused and accepted, (accepted, refused)  # else the format was not tried
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    assert grown < MEMORY, f"{grown >> 20} MiB"
    print(f"{name}: {accepted} read, {refused} refused")
