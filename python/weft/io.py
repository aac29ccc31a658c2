# SPDX-License-Identifier: Apache-2.0
"""Arrays in files: .npy, .npz and .safetensors, read with every size checked against the file."""

from __future__ import annotations

import ast
import json
import math
import os
import struct
import zlib
from collections.abc import Mapping as _Mapping
from typing import Any as _Any

from ._core import shown as _shown
from . import _core
from ._boundary import publish as _publish
from ._errors import error as _error
from ._namespace.common import _array
from ._saved_tree import flat as _flat
from ._whole_file import write_whole as _write_whole

_NPY = {
    "bool": "|b1",
    "int8": "|i1",
    "uint8": "|u1",
    "int16": "<i2",
    "uint16": "<u2",
    "int32": "<i4",
    "uint32": "<u4",
    "int64": "<i8",
    "uint64": "<u8",
    "float16": "<f2",
    "float32": "<f4",
    "float64": "<f8",
    "complex64": "<c8",
    "complex128": "<c16",
}
_FROM_NPY = {v: k for k, v in _NPY.items()}
_ST = {
    "bool": "BOOL",
    "int8": "I8",
    "uint8": "U8",
    "int16": "I16",
    "uint16": "U16",
    "int32": "I32",
    "uint32": "U32",
    "int64": "I64",
    "uint64": "U64",
    "float16": "F16",
    "bfloat16": "BF16",
    "float8_e4m3fn": "F8_E4M3",
    "float8_e5m2": "F8_E5M2",
    "float32": "F32",
    "float64": "F64",
    "complex64": "C64",
}
_FROM_ST = {v: k for k, v in _ST.items()}
_HEADER_LIMIT = 100 << 20
_NPY_HEADER_LIMIT = (
    64 << 10
)  # a descr, a shape, padding: NumPy itself refuses more than 10,000 bytes
_ARCHIVE_LIMIT = 1 << 30  # bytes of an archive's arrays, unless the caller says more
_ARCHIVE_FACTOR = 16  # or so many times the file, whichever is more


def _refuse(code, text, help=""):
    raise _error(_core.IOError, f"io.{code}", text, help=help)


def _npy_bytes(x):
    x = _array(x)
    name = x.dtype.name
    if name not in _NPY:
        _refuse(
            "npy.dtype",
            f"the npy format has no {name}; convert the array or use safetensors",
            help="convert with astype, or use weft.save_safetensors",
        )
    header = repr({"descr": _NPY[name], "fortran_order": False, "shape": tuple(x.shape)})
    header += " " * (-(10 + len(header) + 1) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode(
        "latin1"
    ), _core._to_bytes(x)


def save(path: str | os.PathLike[str] | _Any, x: _Any) -> None:
    """One array as .npy; a dict as .safetensors, a checkpoint's nested dicts, lists and numbers too. weft.load reads both.

    PyTorch's order, save(x, path), is understood. Nothing that runs when it is read is written."""
    named = lambda v: isinstance(v, (str, os.PathLike)) or hasattr(v, "write")  # noqa: E731
    if named(x) and not named(path):
        path, x = x, path
    if hasattr(x, "state_dict") and hasattr(x, "parameters"):
        raise _error(
            _core.ArgumentError,
            "io.save.module",
            f"save of a {type(x).__name__}: files hold arrays, and no code",
            help="weft.save(path, model.state_dict()); pickle.dumps(model) keeps the module itself",
        )
    if isinstance(x, dict):
        save_safetensors(path, _flat(x))
    else:
        _write_whole(path, _npy_bytes(x))


def savez(path: str | os.PathLike[str] | _Any, **arrays: _Any) -> None:
    """Named arrays as .npz."""
    import io
    import zipfile

    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, x in arrays.items():
            archive.writestr(f"{name}.npy", b"".join(_npy_bytes(x)))
    _write_whole(path, [buffer.getvalue()])


def _parse_npy(raw, where):
    if raw[:6] != b"\x93NUMPY" or len(raw) < 10:
        _refuse(
            "npy.magic",
            f"{where} does not begin like an npy file",
            help="name a file that numpy.save or weft.save wrote",
        )
    major = raw[6]
    if major == 1:
        start, length = 10, struct.unpack("<H", raw[8:10])[0]
    elif major in (2, 3):
        if len(raw) < 12:
            _refuse(
                "npy.truncated",
                f"{where} ends inside its header",
                help="write the file again; it is damaged or cut off",
            )
        start, length = 12, struct.unpack("<I", raw[8:12])[0]
    else:
        _refuse(
            "npy.version",
            f"{where} is of npy version {major}, known are 1 to 3",
            help="save it again with numpy.save",
        )
    if length > _NPY_HEADER_LIMIT:
        _refuse(
            "npy.header",
            f"{where} announces a header of {length} bytes; legal: at most {_NPY_HEADER_LIMIT}",
            help="save it again with numpy.save",
        )
    if start + length > len(raw):
        _refuse(
            "npy.truncated",
            f"{where} announces a header of {length} bytes and has {len(raw) - start}",
            help="write the file again; it is damaged or cut off",
        )
    try:
        header = ast.literal_eval(raw[start : start + length].decode("latin1"))
        descr, fortran, shape = header["descr"], header["fortran_order"], tuple(header["shape"])
    except (ValueError, SyntaxError, KeyError, TypeError, RecursionError, MemoryError):
        _refuse(
            "npy.header",
            f"{where} has an unreadable header",
            help="write the file again; it is damaged or cut off",
        )
    swapped = isinstance(descr, str) and descr[:1] == ">" and "<" + descr[1:] in _FROM_NPY
    if swapped:
        descr = "<" + descr[1:]
    if not isinstance(descr, str) or descr not in _FROM_NPY:
        _refuse(
            "npy.dtype",
            f"{where} holds elements of type {_shown(descr)}; known: {', '.join(_FROM_NPY)}",
            help="convert the array before it is saved",
        )
    if not all(isinstance(n, int) and n >= 0 for n in shape):
        _refuse(
            "npy.shape",
            f"{where} has the shape {shape}",
            help="extents are whole numbers from 0 on; write the file again; it is damaged or cut off",
        )
    dtype = _core.dtype(_FROM_NPY[descr])
    need = math.prod(shape) * dtype.itemsize
    body = memoryview(raw)[start + length :]
    if len(body) < need:
        _refuse(
            "npy.truncated",
            f"{where} needs {need} bytes of elements and has {len(body)}",
            help="write the file again; it is damaged or cut off",
        )
    body = body[:need]
    if swapped:  # most significant byte first: turn each number around
        one = dtype.itemsize // (2 if dtype.kind == "c" else 1)
        numbers = _core._from_bytes(body, (need // one, one), _core.dtype("uint8"))
        body = _core._to_bytes(numbers[:, ::-1])
    if fortran:
        return _core._from_bytes(body, tuple(reversed(shape)), dtype).permute(
            tuple(reversed(range(len(shape))))
        )
    return _core._from_bytes(body, shape, dtype)


def _once(pairs):
    """The object of a header that names each entry once: of two readers one would take the first, one the last."""
    out = dict(pairs)
    if len(out) != len(pairs):
        names = [k for k, _ in pairs]
        raise ValueError(f"{next(k for k in names if names.count(k) > 1)!r} is there twice")
    return out


def _apart(path, places, code):
    """Refuses arrays that share bytes of a file, which a small file could name any number of times.

    `places`: name -> (first byte, end)."""
    last, reached = None, 0
    for name, (begin, end) in sorted(places.items(), key=lambda p: p[1]):
        if begin < end and begin < reached:
            _refuse(
                code,
                f"{path} places {_shown(name)} at bytes {begin} to {end}, where {_shown(last)} lies",
                help="write the file again; it is damaged",
            )
        if end > reached:
            last, reached = name, end


def _member(archive, entry, path, left):
    """The bytes of one array in an archive, at most `left`, whatever size the archive states."""
    with archive.open(entry) as member:
        raw = member.read(left + 1)
    if len(raw) > left:
        raise _error(
            "io",
            "io.npz.limit",
            f"{path}:{entry.filename} makes the arrays of the archive larger than the limit",
            help="where the file is trusted: load_arrays(path, limit=bytes)",
        )
    return raw


def holds_arrays(path: str | os.PathLike[str] | _Any) -> bool:
    """Whether a file begins as load_arrays reads it; False where there is none."""
    path = os.fspath(path)  # a number would be a descriptor
    try:
        with open(path, "rb") as f:
            head = f.read(9)
    except OSError:
        return False
    return head[:6] == b"\x93NUMPY" or head[:2] == b"PK" or head[4:] == b"\0\0\0\0{"


def _load_open(file, limit):
    """What an open file holds: its bytes in a file of their own, which goes when it has been read."""
    import tempfile

    with tempfile.NamedTemporaryFile(prefix=".weft-") as copy:
        copy.write(file.read())
        copy.flush()
        return load_arrays(copy.name, limit)


def load_arrays(path: str | os.PathLike[str] | _Any, limit: int | None = None) -> dict[str, _Any]:
    """The array of a .npy file, a dict of arrays of a .npz or .safetensors file.

    An archive's arrays may take `limit` bytes in all; None: 1 GiB or 16 times the file, whichever is more, because
    a small archive can unpack to any size. Raises weft.IOError: io.npz.limit, io.npz.damaged, io.npy.*, io.safetensors.*.
    """
    if hasattr(path, "read"):
        return _load_open(path, limit)
    path = os.fspath(path)
    if limit is None:
        limit = max(_ARCHIVE_LIMIT, _ARCHIVE_FACTOR * os.path.getsize(path))
    with open(path, "rb") as f:
        magic = f.read(6)
    if magic == b"\x93NUMPY":
        with open(path, "rb") as f:
            return _parse_npy(f.read(), path)
    if magic[:2] == b"PK":
        import lzma
        import zipfile

        try:
            with zipfile.ZipFile(path) as archive:
                out = {}
                for entry in archive.infolist():
                    name = entry.filename
                    if name.removesuffix(".npy") in out:
                        raise ValueError(f"{name!r} is there twice")
                    raw = _member(archive, entry, path, limit)
                    limit -= len(raw)
                    out[name.removesuffix(".npy")] = _parse_npy(raw, f"{path}:{name}")
                return out
        except _core.Error:
            raise
        except (
            zipfile.BadZipFile,
            zlib.error,
            lzma.LZMAError,
            EOFError,
            KeyError,
            OSError,
            RuntimeError,
            ValueError,
            struct.error,
        ) as error:
            _refuse(
                "npz.damaged",
                f"{path} is a damaged archive ({error})",
                help="write the file again; it is damaged or cut off",
            )
    return load_safetensors(path)


def save_safetensors(
    path: str | os.PathLike[str] | _Any,
    arrays: _Mapping[str, _Any],
    metadata: _Mapping[str, str] | None = None,
) -> None:
    """Named arrays as .safetensors."""
    header, parts, at = {}, [], 0
    if metadata:
        header["__metadata__"] = {str(k): str(v) for k, v in metadata.items()}
    for name, x in arrays.items():
        x = _array(x)
        if x.dtype.name not in _ST:
            _refuse(
                "safetensors.dtype",
                f"safetensors has no {x.dtype.name}",
                help="convert the array with astype",
            )
        raw = _core._to_bytes(x)
        header[name] = {
            "dtype": _ST[x.dtype.name],
            "shape": list(x.shape),
            "data_offsets": [at, at + len(raw)],
        }
        parts.append(raw)
        at += len(raw)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    _write_whole(path, [struct.pack("<Q", len(text)), text, *parts])


def load_safetensors(path: str | os.PathLike[str] | _Any) -> dict[str, _core.NDArray]:
    """A dict of the arrays of a .safetensors file."""
    path = os.fspath(path)
    size = os.path.getsize(path)
    with open(path, "rb") as f:
        head = f.read(8)
        if len(head) < 8:
            _refuse(
                "safetensors.truncated",
                f"{path} has {len(head)} bytes, too few for a header",
                help="write the file again; it is damaged or cut off",
            )
        length = struct.unpack("<Q", head)[0]
        if length > min(size - 8, _HEADER_LIMIT):
            _refuse(
                "safetensors.header",
                f"{path} announces a header of {length} bytes in a file of {size}",
                help="write the file again; it is damaged or cut off",
            )
        try:
            header = json.loads(f.read(length), object_pairs_hook=_once)
            if not isinstance(header, dict):
                raise ValueError("not an object")
        except (ValueError, UnicodeDecodeError, RecursionError) as error:
            _refuse(
                "safetensors.header",
                f"{path} has an unreadable header ({error})",
                help="write the file again; it is damaged or cut off",
            )
        body = memoryview(f.read())
    out, places = {}, {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        try:
            kind, shape, (begin, end) = entry["dtype"], tuple(entry["shape"]), entry["data_offsets"]
            legal = all(isinstance(n, int) and n >= 0 for n in (*shape, begin, end))
        except (KeyError, TypeError, ValueError):
            legal = False
        if not legal:
            _refuse(
                "safetensors.entry",
                f"{path} describes tensor {_shown(name)} wrongly",
                help="write the file again; it is damaged or cut off",
            )
        if not isinstance(kind, str) or kind not in _FROM_ST:
            _refuse(
                "safetensors.dtype",
                f"{path} holds {_shown(name)} of type {_shown(kind)}",
                help="convert the tensor in the program that wrote it",
            )
        dtype = _core.dtype(_FROM_ST[kind])
        if begin > end or end > len(body) or end - begin != math.prod(shape) * dtype.itemsize:
            _refuse(
                "safetensors.range",
                f"{path} places {_shown(name)} at bytes {begin} to {end} of {len(body)}, shape {shape}",
                help="write the file again; it is damaged or cut off",
            )
        places[name] = begin, end
        out[name] = body[begin:end], shape, dtype
    _apart(path, places, "safetensors.range")
    return {name: _core._from_bytes(*parts) for name, parts in out.items()}


_publish(__name__)
