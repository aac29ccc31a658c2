# SPDX-License-Identifier: Apache-2.0
"""GGUF files: named tensors and metadata, read with every count and place checked against the file.

Quantised tensors (blocks of small integers with scales) are read as float32, or kept as blocks by ``Quantized``.
"""

from __future__ import annotations

import math
import os
import struct
from collections.abc import Sequence as _Sequence
from typing import Any as _Any

from ._core import shown as _shown
from ._boundary import publish as _publish
from ._boundary import publish_classes as _publish_classes
from . import _core
from ._errors import error as _error
from .io import _apart

_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}  # fmt: skip
_STRING, _ARRAY = 8, 9
_PLAIN = {0: "float32", 1: "float16", 24: "int8", 25: "int16", 26: "int32", 27: "int64", 28: "float64", 30: "bfloat16"}  # fmt: skip
# type -> (name, elements of a block, bytes of a block)
_BLOCKS = {
    2: ("Q4_0", 32, 18), 3: ("Q4_1", 32, 20), 6: ("Q5_0", 32, 22), 7: ("Q5_1", 32, 24), 8: ("Q8_0", 32, 34),
    12: ("Q4_K", 256, 144), 14: ("Q6_K", 256, 210),
}  # fmt: skip
_LIMIT = (
    1 << 20
)  # tensors, entries of metadata; of one string: bytes; of one list: elements times 64
_DEPTH = 4


def _refuse(code, text, help=""):
    raise _error(_core.IOError, f"io.gguf.{code}", text, help=help)


class _Reader:
    """An open file. Not mapped: a file that another process cuts off would kill this one."""

    def __init__(self, file, path):
        self.file, self.path, self.at = file, path, 0
        self.size = os.fstat(file.fileno()).st_size

    def bytes(self, n, what):
        """The next n bytes."""
        raw = self.file.read(n) if self.at + n <= self.size else b""
        if len(raw) != n:
            _refuse("truncated", f"{self.path} ends inside {what}: {self.size} bytes")
        self.at += n
        return raw

    def seek(self, at):
        self.at = at
        self.file.seek(at)

    def take(self, form, what):
        return struct.unpack("<" + form, self.bytes(struct.calcsize("<" + form), what))[0]

    def count(self, form, what, limit=_LIMIT):
        n = self.take(form, what)
        if n > limit:
            _refuse("limit", f"{self.path} announces {n} {what}; legal: at most {limit}")
        return n

    def string(self, what):
        n = self.count("Q", f"bytes of {what}", min(self.size - self.at, 64 * _LIMIT))
        try:
            return self.bytes(n, what).decode()
        except UnicodeDecodeError:
            _refuse("text", f"{self.path} has {what} that is no UTF-8")

    def value(self, kind, what, depth=0):
        if kind in _NUMBERS:
            return self.take(_NUMBERS[kind], what)
        if kind == _STRING:
            return self.string(what)
        if kind != _ARRAY or depth == _DEPTH:
            _refuse("value", f"{self.path} has {what} of type {kind} at depth {depth}; legal: 0 to 12, depth {_DEPTH}")  # fmt: skip
        inner = self.take("I", what)
        n = self.count("Q", f"elements of {what}", min(self.size - self.at, 64 * _LIMIT))
        if inner in _NUMBERS:
            form = f"<{n}{_NUMBERS[inner]}"
            return list(struct.unpack(form, self.bytes(struct.calcsize(form), what)))
        return [self.value(inner, what, depth + 1) for _ in range(n)]


class Quantized:
    """A quantised tensor as it is in the file: `kind`, `shape`, and `blocks`, bytes of shape (blocks, bytes of one)."""

    __slots__ = ("kind", "shape", "blocks")

    def __init__(self, kind: _Any, shape: _Sequence[int], blocks: _Any) -> None:
        self.kind, self.shape, self.blocks = kind, shape, blocks

    def __repr__(self):
        return f"weft.gguf.Quantized({self.kind}, shape={self.shape})"

    def dequantize(self) -> _Any:
        """The values as an array of float32."""
        return _DECODERS[self.kind](self.blocks).reshape(self.shape)


def _half(blocks, at, count=1):
    """Float16 numbers that lie in bytes of each block, as float32 (blocks, count)."""
    low = blocks[:, at : at + 2 * count : 2].astype("int32")
    high = blocks[:, at + 1 : at + 2 * count : 2].astype("int32")
    word = low + high * 256
    sign = 1.0 - (word >> 15).astype("float32") * 2.0
    exponent = (word >> 10) & 31
    fraction = (word & 1023).astype("float32")
    import weft

    power = weft.exp2(weft.maximum(exponent, 1).astype("float64") - 25.0).astype("float32")
    finite = (weft.where(exponent > 0, 1024.0, 0.0).astype("float32") + fraction) * power
    special = weft.where(fraction > 0, math.nan, math.inf).astype("float32")
    return sign * weft.where(exponent == 31, special, finite)


def _nibbles(q):
    """Low halves of bytes, then high halves."""
    import weft

    return weft.concat([q & 15, q >> 4], axis=1).astype("int32")


def _fifth_bits(blocks, at):
    """Bit i of a word of 32 bits, for i in 0..31, of each block."""
    import weft

    parts = blocks[:, at : at + 4].astype("int32")
    bits = (parts[:, :, None] >> weft.arange(8, dtype="int32")) & 1
    return bits.reshape((-1, 32))


def _signed(x):
    """Bytes as numbers from -128 to 127."""
    x = x.astype("int32")
    return x - (x >> 7) * 256


def _q4_k(b):
    import weft

    scale, least = _half(b, 0), _half(b, 2)
    s = b[:, 4:16].astype("int32")
    low = weft.concat([s[:, :4] & 63, (s[:, 8:] & 15) | ((s[:, :4] >> 6) << 4)], axis=1)
    minimum = weft.concat([s[:, 4:8] & 63, (s[:, 8:] >> 4) | ((s[:, 4:8] >> 6) << 4)], axis=1)
    q = b[:, 16:144].reshape((-1, 4, 32))
    q = weft.stack([q & 15, q >> 4], axis=2).reshape((-1, 8, 32)).astype("float32")
    factor = (scale * low.astype("float32"))[:, :, None]
    offset = (least * minimum.astype("float32"))[:, :, None]
    return factor * q - offset


def _q6_k(b):
    import weft

    low = b[:, :128].astype("int32").reshape((-1, 2, 2, 32))
    high = b[:, 128:192].astype("int32").reshape((-1, 2, 32))
    scales = _signed(b[:, 192:208]).reshape((-1, 2, 4, 2)).astype("float32")
    parts = [
        (low[:, :, 0] & 15) | ((high & 3) << 4),
        (low[:, :, 1] & 15) | (((high >> 2) & 3) << 4),
        (low[:, :, 0] >> 4) | (((high >> 4) & 3) << 4),
        (low[:, :, 1] >> 4) | (((high >> 6) & 3) << 4),
    ]
    q = (weft.stack(parts, axis=2) - 32).astype("float32").reshape((-1, 2, 4, 2, 16))
    return (_half(b, 208)[:, :, None] * scales.reshape((-1, 16, 1))) * q.reshape((-1, 16, 16))


_DECODERS = {
    "Q4_0": lambda b: _half(b, 0) * (_nibbles(b[:, 2:]) - 8).astype("float32"),
    "Q4_1": lambda b: _half(b, 0) * _nibbles(b[:, 4:]).astype("float32") + _half(b, 2),
    "Q5_0": lambda b: _half(b, 0) * ((_nibbles(b[:, 6:]) | (_fifth_bits(b, 2) << 4)) - 16).astype("float32"),
    "Q5_1": lambda b: _half(b, 0) * (_nibbles(b[:, 8:]) | (_fifth_bits(b, 4) << 4)).astype("float32") + _half(b, 2),
    "Q8_0": lambda b: _half(b, 0) * _signed(b[:, 2:]).astype("float32"),
    "Q4_K": _q4_k,
    "Q6_K": _q6_k,
}  # fmt: skip


def load_gguf(path: str | os.PathLike[str], quantized: bool = False) -> _Any:
    """(tensors, metadata) of a GGUF file of version 2 or 3, two dicts by name.

    Shapes are outermost extent first, as in NumPy: the reverse of the file's. Quantised tensors become float32; with
    quantized=True they stay ``weft.gguf.Quantized`` blocks. Raises IOError: io.gguf.magic, version, truncated, limit,
    text, value, tensor, type, range.
    """
    path = os.fspath(path)
    if os.path.getsize(path) < 24:
        _refuse("truncated", f"{path} has {os.path.getsize(path)} bytes, too few for a header")
    with open(path, "rb") as f:
        return _parse(_Reader(f, path), quantized)


def _parse(r, quantized):
    if r.bytes(4, "the first word") != b"GGUF":
        _refuse("magic", f"{r.path} does not begin like a GGUF file")
    version = r.take("I", "the version")
    if version not in (2, 3):
        _refuse("version", f"{r.path} is of GGUF version {version}; known are 2 and 3, least significant byte first")  # fmt: skip
    tensors, entries = r.count("Q", "tensors"), r.count("Q", "entries of metadata")
    metadata = {}
    for _ in range(entries):
        name = r.string("a key")
        if name in metadata:
            _refuse("value", f"{r.path} has the key {_shown(name)} twice")
        metadata[name] = r.value(r.take("I", f"the type of {name!r}"), f"the value of {name!r}")
    listed = {}
    for _ in range(tensors):
        name = r.string("a tensor's name")
        rank = r.count("I", f"axes of {name!r}", 8)
        shape = tuple(reversed([r.take("Q", f"the shape of {name!r}") for _ in range(rank)]))
        if name in listed:
            _refuse("tensor", f"{r.path} names the tensor {_shown(name)} twice")
        listed[name] = shape, r.take("I", f"the type of {name!r}"), r.take("Q", f"the place of {name!r}")  # fmt: skip
    align = metadata.get("general.alignment", 32)
    if not isinstance(align, int) or not 1 <= align <= 1 << 20:
        _refuse("value", f"{r.path} has the alignment {_shown(align)}; legal: 1 to {1 << 20}")
    start = -(-r.at // align) * align
    placed = {n: _placed(r, n, start, *entry) for n, entry in listed.items()}
    _apart(r.path, {n: (p[0], p[0] + p[1]) for n, p in placed.items()}, "gguf.range")
    return {n: _tensor(r, n, *listed[n][:2], *placed[n], quantized) for n in listed}, metadata


def _placed(r, name, start, shape, kind, offset):
    """The first byte of a tensor, and its bytes."""
    count = math.prod(shape)
    if kind in _PLAIN:
        size = count * _core.dtype(_PLAIN[kind]).itemsize
    elif kind in _BLOCKS:
        label, elements, width = _BLOCKS[kind]
        if not shape or shape[-1] % elements:
            _refuse("tensor", f"{r.path}: {_shown(name)} of type {label} has the shape {shape}, whose last extent is no multiple of {elements}")  # fmt: skip
        size = count // elements * width
    else:
        known = [*_PLAIN.values(), *(b[0] for b in _BLOCKS.values())]
        _refuse("type", f"{r.path} holds {_shown(name)} of type {kind}; known: {', '.join(known)}")
    begin = start + offset
    if begin + size > r.size:
        _refuse("range", f"{r.path} places {_shown(name)} at bytes {begin} to {begin + size} of {r.size}, shape {shape}")  # fmt: skip
    return begin, size


def _tensor(r, name, shape, kind, begin, size, quantized):
    r.seek(begin)
    raw = r.bytes(size, repr(name))
    if kind in _PLAIN:
        return _core._from_bytes(raw, shape, _core.dtype(_PLAIN[kind]))
    label, _, width = _BLOCKS[kind]
    blocks = _core._from_bytes(raw, (size // width, width), _core.dtype("uint8"))
    found = Quantized(label, shape, blocks)
    return found if quantized else found.dequantize()


_publish(__name__)
_publish_classes(__name__)
