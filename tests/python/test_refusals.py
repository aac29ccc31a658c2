# SPDX-License-Identifier: Apache-2.0
"""Every error that the Python side of arrays, networks and PyTorch's operators makes: class, code, text; and files that are
damaged at random."""

import gzip
import json
import os
import pathlib
import re
import struct
import sys

import numpy as np
import pytest

import weft
from weft import nn
from weft._core import Tensor

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "compat" / "needle"))
A, S, D, X = weft.ArgumentError, weft.ShapeError, weft.DTypeError, weft.IndexError


def idx(tmp_path, raw):
    path = tmp_path / "images.gz"
    path.write_bytes(gzip.compress(raw))
    return weft.data._read_idx(path)


class NoLibrary:
    fft = ifft = staticmethod(lambda x: x)


def traced(name, count):
    x = weft._core._lazy_input(0, weft.float32, (2,))
    return weft._core._lazy_row(name, [x] * count)


def traced_rows(name, dtype):
    return weft._core._lazy_rows(name, [weft._core._lazy_input(0, dtype, (2,))])


def annotated():
    from weft import te

    te.compute((8,), lambda i: i, name="B", attrs={"note": object()})


def demo_elsewhere(tmp_path):
    from weft.cli import demo

    home, place = demo.weft.__file__, pathlib.Path.cwd()
    try:
        os.chdir(tmp_path)
        demo.weft.__file__ = str(tmp_path / "weft" / "__init__.py")
        demo._examples()
    finally:
        os.chdir(place)
        demo.weft.__file__ = home


CASES = [
    (lambda x, p: x.__dlpack__(stream=0, dl_device=(2, 0)), A, "array.dlpack.stream", "ambiguous"),
    (
        lambda x, p: weft._core._reduce("mode", x, None, False, None),
        A,
        "array.reduce.unknown",
        'no reduction "mode"',
    ),
    (lambda x, p: traced("gamma", 1), A, "compile.row.unknown", 'no operation "gamma"'),
    (
        lambda x, p: traced_rows("median", weft.float32),
        A,
        "compile.rows.unknown",
        'row kernel "median"',
    ),
    (
        lambda x, p: traced_rows("softmax", weft.int32),
        D,
        "compile.rows.operands",
        r"rows of int32\(2,\)",
    ),
    (lambda x, p: traced("add", 1), A, "compile.row.arity", "add takes 2 arguments and got 1"),
    (lambda x, p: demo_elsewhere(p), weft.IOError, "cli.demo.examples", "not part of this"),
    (lambda x, p: annotated(), A, "python.value", "cannot be stored in a program: <object"),
    (lambda x, p: x.__array_namespace__(api_version="1999.01"), A, "array.api.version", "1999.01"),
    (lambda x, p: weft.arange(1, 5, 0), A, "array.arange.step", "from 1 to 5"),
    (lambda x, p: weft.astype(x * 1j, "float32"), D, "array.astype.complex", "real"),
    (lambda x, p: weft.linalg.cross(x, x), S, "array.cross.extent", "got 4 and 4"),
    (lambda x, p: weft.cumulative_sum(x), A, "array.cumulative_sum.axis", "2 dimensions"),
    (lambda x, p: weft.einsum("ij,jk", x), S, "array.einsum.operands", "2 operands, 1"),
    (lambda x, p: weft.einsum("ijk", x), S, "array.einsum.rank", "names 3 axes"),
    (lambda x, p: weft.einsum("ij->k", x), S, "array.einsum.output", "'k'"),
    (lambda x, p: weft.einsum("ij,jk", x, x), S, "array.einsum.extent", "4 and 2|2 and 4"),
    (lambda x, p: weft.expand_dims(x, (0, 0)), A, "array.expand_dims.axis", "twice"),
    (lambda x, p: weft.expand_dims(x, (0, 7)), X, "array.expand_dims.axis", "axis 7"),
    (lambda x, p: weft.fft.use(NoLibrary), A, "array.fft.library", "rfft, irfft"),
    (lambda x, p: weft.fft.fft(x * 1j, norm="x"), A, "array.fft.norm", "'ortho'"),
    (lambda x, p: weft.fft.fft(x * 1j, n=0), A, "array.fft.length", "0 points"),
    (lambda x, p: weft.fft.rfft(x * 1j), D, "array.rfft.dtype", "complex64"),
    (lambda x, p: weft.fft.irfft(x[:, :1] * 1j), A, "array.irfft.length", "0 points"),
    (lambda x, p: weft.finfo("int8"), D, "array.finfo.dtype", "int8"),
    (lambda x, p: weft.iinfo("float32"), D, "array.iinfo.dtype", "float32"),
    (lambda x, p: weft.grad(lambda t: t * t)(Tensor(x)), A, "array.grad.scalar", r"\(2, 4\)"),
    (lambda x, p: weft.isdtype(x.dtype, "fancy"), A, "array.isdtype.kind", "numeric"),
    (lambda x, p: weft.linalg.matrix_norm(x, ord="x"), A, "array.matrix_norm.ord", "'fro'"),
    (lambda x, p: weft.meshgrid(x[0], indexing="x"), A, "array.meshgrid.indexing", "'ij'"),
    (lambda x, p: weft.linalg.outer(x, x), S, "array.outer.rank", r"\(2, 4\)"),
    (lambda x, p: weft.linalg.qr(x, mode="x"), A, "array.qr.mode", "'reduced'"),
    (lambda x, p: weft.result_type(1, 2.0), A, "array.result_type.empty", "2 arguments"),
    (lambda x, p: weft.searchsorted(x[0], x, side="x"), A, "array.searchsorted.side", "'left'"),
    (lambda x, p: weft.stack([x, x[0]]), S, "array.stack.shape", r"\(2, 4\) and \(4,\)"),
    (lambda x, p: weft.stack([x, x], axis=4), X, "array.stack.axis", "3 dimensions"),
    (lambda x, p: weft.tensordot(x, x, axes=1), S, "array.tensordot.extent", "4 and 2"),
    (lambda x, p: x.to_device("cpu", stream=3), A, "array.to_device.stream", "3"),
    (lambda x, p: weft.tril(x[0]), S, "array.tril.rank", "not 1"),
    (lambda x, p: weft.vecdot(x[None], x, axis=0), A, "array.vecdot.axis", "negative"),
    (lambda x, p: weft.vecdot(x, x[:, :3]), S, "array.vecdot.extent", "4 and 3"),
    (lambda x, p: weft.moveaxis(x, 5, 0), X, "array.moveaxis.axis", "axis 5"),
    (lambda x, p: weft.squeeze(Tensor(x), 0), A, "array.squeeze.extent", r"\(2, 4\)"),
    (lambda x, p: x.__setitem__(0, x), S, "array.assign.shape", r"\(2, 4\) to shape \(4,\)"),
    (lambda x, p: weft.concat([]), A, "array.concat.empty", "0 arrays"),
    (lambda x, p: weft.NDArray.make((2, 2), (1,), handle=x.handle), S, "array.make.rank", "differ"),
    (lambda x, p: x.reshape(-1, -2), S, "array.reshape.extent", "extent -2|-2"),
    (lambda x, p: x.reshape(5, 5), S, "array.reshape.size", "8 elements"),
    (lambda x, p: weft.linalg.solve(x[:, :2], x[0]), S, "array.solve.extent", "2 rows"),
    (
        lambda x, p: weft.take_along_axis(x, weft.zeros((3, 1), dtype="int64"), axis=1),
        S,
        "array.take_along_axis.broadcast",
        "axis 0",
    ),
    (lambda x, p: idx(p, b"nonsense"), weft.IOError, "data.idx.header", "images.gz"),
    (
        lambda x, p: idx(p, b"\0\0\x08\1\0\0\0\5abc"),
        weft.IOError,
        "data.idx.size",
        "5 bytes and has 3",
    ),
    (lambda x, p: nn.MultiHeadAttention(6, 4), S, "nn.attention.heads", "6 features"),
    (
        lambda x, p: nn.functional.cross_entropy(Tensor(x), [0, 4]),
        X,
        "nn.cross_entropy.label",
        r"\[0, 4\)",
    ),
    (
        lambda x, p: nn.functional.cross_entropy(Tensor(x), [0]),
        S,
        "nn.cross_entropy.shape",
        r"\(1,\)",
    ),
    (
        lambda x, p: nn.functional.conv_transpose1d(Tensor(x), Tensor(x)),
        S,
        "nn.conv_transpose1d.shape",
        r"\(2, 4\)",
    ),
    (lambda x, p: nn.Linear(2, 3).load_state_dict({"weight": x}), A, "nn.state.names", "bias"),
    (
        lambda x, p: nn.Linear(2, 3).load_state_dict({"weight": x, "bias": x}),
        S,
        "nn.state.shape",
        r"\(2, 3\), the state has \(2, 4\)",
    ),
    (lambda x, p: weft.compile(lambda t: t + 1).kernels, A, "compile.trace.none", "not called yet"),
    (
        lambda x, p: weft.compile(lambda t: t if t.sum() > 0 else t * 2)(x),
        A,
        "compile.trace.unsupported",
        "truth of a traced value",
    ),
    (lambda x, p: weft.random.integers(3, 3), A, "random.integers.range", r"\[3, 3\)"),
    (lambda x, p: Tensor(x).data.__setitem__(9, 0), X, "array.index.range", "outside axis 0"),
    (
        lambda x, p: Tensor(x)[:, weft.asarray([4])],
        X,
        "array.index.range",
        "index 4",
    ),
]


@pytest.mark.parametrize("case", range(len(CASES)))
def test_each_refusal(case, tmp_path):
    call, kind, code, text = CASES[case]
    x = weft.reshape(weft.arange(8, dtype="float32"), (2, 4))
    with pytest.raises(kind) as info:
        call(x, tmp_path)
    error = info.value
    assert error.code == code and isinstance(error, weft.Error)
    assert re.search(text, str(error)), str(error)
    assert str(error).startswith(f"error[{code}]: {error.message}") and error.kind
    assert x.tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_needle_and_torch_refuse_alike():
    from needle import backend_ndarray as nd

    with pytest.raises(D, match="object") as info:
        nd.NDArray(object(), device=nd.cpu())
    assert info.value.code in ("needle.array.dtype", "array.asarray.type")
    if not nd.cuda().enabled():
        with pytest.raises(weft.DeviceError, match=r"cuda\(\) is not here: .*libcuda") as info:
            nd.NDArray([1, 2, 3], device=nd.cuda())
        assert info.value.code == "needle.device.absent"
    pytest.importorskip("torch")
    import torch
    import weft.torch as wt

    with pytest.raises(D) as info:
        wt.mv(torch.ones(2, 2), torch.ones(2, dtype=torch.float64))
    assert info.value.code == "torch.mv.dtype"
    with pytest.raises(S, match="cpu and meta") as info:
        wt.add(torch.ones(2), torch.ones(2, device="meta"))
    assert info.value.code == "torch.add.device"


def test_every_code_made_in_python_is_provoked_by_a_test():
    made = set()
    call = re.compile(r'_error\(\s*[\w.]+,\s*f?"([\w.{}]+)"')
    short = re.compile(r'_refuse\(\s*f?"([\w.{}]+)"')
    for folder in ("python/weft", "compat/needle"):
        for path in (ROOT / folder).rglob("*.py"):
            text = path.read_text()
            if path.stem in ("wse", "wse_layout", "wse_tools"):
                continue
            made |= set(call.findall(text))
            prefix = {"io": "io.", "torch": "torch.", "_einsum": "array.einsum."}.get(path.stem)
            if prefix:
                made |= {prefix + code for code in short.findall(text)}
    made -= {"io.{code}", "torch.{code}", "array.einsum.{code}"}
    tests = "".join(p.read_text() for p in (ROOT / "tests" / "python").glob("*.py"))
    silent = [
        code
        for code in sorted(made)
        if not re.search(re.sub(r"\\{\w+\\}", r"\\w+", re.escape(code)), tests)
    ]
    assert len(made) > 50 and silent == []


def npy(descr="'<f4'", shape="(2,)", body=b"\0" * 8, version=1):
    header = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}}}".encode()
    size = struct.pack("<H", len(header)) if version == 1 else struct.pack("<I", len(header))
    return b"\x93NUMPY" + bytes([version, 0]) + size + header + body


def safetensors(header, body=b"\0" * 8):
    raw = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(raw)) + raw + body


def entry(dtype="F32", shape=(2,), offsets=(0, 8)):
    return {"x": {"dtype": dtype, "shape": shape, "data_offsets": offsets}}


DAMAGED = [
    (npy("[('a', '<f4')]"), "io.npy.dtype"),
    (npy("'<M8[s]'"), "io.npy.dtype"),
    (npy(shape="(-2,)"), "io.npy.shape"),
    (npy(shape="(2**70,)"), "io.npy.header"),
    (npy(shape="(1180591620717411303424,)"), "io.npy.truncated"),
    (npy("'<f4'", "(" * 3000), "io.npy.header"),
    (npy(version=9), "io.npy.version"),
    (npy(body=b"\0" * 7), "io.npy.truncated"),
    (b"\x93NUMPY\1", "io.npy.magic"),
    (b"\x93NUMPY\2\0\0\0\0", "io.npy.truncated"),
    (safetensors(b"[" * 100_000), "io.safetensors.header"),
    (safetensors(b"{\xff"), "io.safetensors.header"),
    (b"\0\0", "io.safetensors.truncated"),
    (safetensors(entry("Q9")), "io.safetensors.dtype"),
    (safetensors(entry(["F32"])), "io.safetensors.dtype"),
    (safetensors(entry(offsets=(8, 16))), "io.safetensors.range"),
    (safetensors(entry(offsets=(4, 12))), "io.safetensors.range"),
    (safetensors(entry(shape=(2**62, 4))), "io.safetensors.range"),
    (safetensors(entry(shape=(-2,))), "io.safetensors.entry"),
    (safetensors({"x": 3}), "io.safetensors.entry"),
    (b"PK\3\4" + b"\0" * 40, "io.npz.damaged"),
]


@pytest.mark.parametrize("case", range(len(DAMAGED)))
def test_damaged_files(case, tmp_path):
    raw, code = DAMAGED[case]
    (tmp_path / "file").write_bytes(raw)
    with pytest.raises(weft.IOError) as info:
        weft.load_arrays(tmp_path / "file")
    assert info.value.code == code and "file" in info.value.message


def test_files_damaged_at_random(rng, tmp_path):
    """Flipped, inserted and cut bytes: an error of ours, or arrays; never anything else."""
    arrays = {"a": weft.arange(7), "b": weft.ones((2, 3), dtype="complex64")}
    np.savez_compressed(tmp_path / "c.npz", **{k: v.numpy() for k, v in arrays.items()})
    weft.savez(tmp_path / "s.npz", **arrays)
    weft.save_safetensors(tmp_path / "t", {"a": arrays["a"]})
    weft.save(tmp_path / "n", arrays["b"])
    refused = 0
    for name in ("c.npz", "s.npz", "t", "n"):
        raw = (tmp_path / name).read_bytes()
        for _ in range(150):
            data = bytearray(raw)
            for _ in range(int(rng.integers(1, 4))):
                at, how = int(rng.integers(0, len(data))), rng.integers(0, 4)
                if how == 0:
                    del data[at:]
                    data += b"\0"
                elif how == 1:
                    data[at:at] = bytes(rng.integers(0, 256, 3).astype("uint8"))
                else:
                    data[at] ^= 1 << int(rng.integers(0, 8))
            (tmp_path / "damaged").write_bytes(data)
            try:
                weft.load_arrays(tmp_path / "damaged")
            except weft.Error as error:
                assert error.code
                refused += 1
    assert refused > 200


def test_memory_that_is_not_there_is_said_with_figures():
    import gc

    x = weft.ones((1 << 16,))
    del x  # goes to the cache of the device
    gc.collect()
    with pytest.raises(weft.OutOfMemoryError) as info:
        weft.empty((1 << 45,))
    assert info.value.code == "device.memory.exhausted"
    assert "128 TiB" in str(info.value) and "cached blocks were given back" in str(info.value)
    assert weft.ones((1 << 16,)).sum().item() == 1 << 16
