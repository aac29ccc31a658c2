# SPDX-License-Identifier: Apache-2.0
"""GGUF files beside a decoder of single elements written from the format's description; damaged files."""

import struct

import numpy as np
import pytest

import weft

SIZES = {"Q4_0": (2, 32, 18), "Q4_1": (3, 32, 20), "Q5_0": (6, 32, 22), "Q5_1": (7, 32, 24), "Q8_0": (8, 32, 34), "Q4_K": (12, 256, 144), "Q6_K": (14, 256, 210)}  # fmt: skip


def half(b, at):
    return float(np.frombuffer(bytes(b[at : at + 2]), "<f2")[0])


def element(kind, b, i):
    """Element i of the block of bytes b."""
    low = lambda q: q & 15  # noqa: E731
    nibble = lambda at: low(b[at + i]) if i < 16 else b[at + i - 16] >> 4  # noqa: E731
    fifth = lambda at: (int.from_bytes(bytes(b[at : at + 4]), "little") >> i & 1) << 4  # noqa: E731
    if kind == "Q8_0":
        return half(b, 0) * int(np.int8(np.uint8(b[2 + i])))
    if kind == "Q4_0":
        return half(b, 0) * (nibble(2) - 8)
    if kind == "Q4_1":
        return half(b, 0) * nibble(4) + half(b, 2)
    if kind == "Q5_0":
        return half(b, 0) * ((nibble(6) | fifth(2)) - 16)
    if kind == "Q5_1":
        return half(b, 0) * (nibble(8) | fifth(4)) + half(b, 2)
    if kind == "Q4_K":
        j, s = i // 32, b[4:16]
        if j < 4:
            scale, least = s[j] & 63, s[j + 4] & 63
        else:
            scale, least = low(s[j + 4]) | (s[j - 4] >> 6) << 4, s[j + 4] >> 4 | (s[j] >> 6) << 4
        byte = b[16 + 32 * (i // 64) + i % 32]
        return half(b, 0) * scale * (byte >> 4 if i % 64 >= 32 else low(byte)) - half(b, 2) * least
    n, part, at = i // 128, i % 128 // 32, i % 32
    byte = b[64 * n + at + 32 * (part % 2)]
    q = (byte >> 4 if part >= 2 else low(byte)) | (b[128 + 32 * n + at] >> 2 * part & 3) << 4
    return half(b, 208) * int(np.int8(np.uint8(b[192 + 8 * n + 2 * part + at // 16]))) * (q - 32)


def text(s):
    return struct.pack("<Q", len(s)) + s.encode()


def written(tensors, metadata=b"", entries=0, version=3, align=32):
    """tensors: name -> (shape outermost first, type, bytes)."""
    head = b"GGUF" + struct.pack("<IQQ", version, len(tensors), entries) + metadata
    body = b""
    for name, (shape, kind, raw) in tensors.items():
        head += text(name) + struct.pack("<I", len(shape))
        head += b"".join(struct.pack("<Q", n) for n in reversed(shape))
        head += struct.pack("<IQ", kind, len(body))
        body += raw + b"\0" * (-len(raw) % align)
    return head + b"\0" * (-len(head) % align) + body


@pytest.mark.parametrize("kind", SIZES)
def test_quantised_types(rng, tmp_path, kind):
    number, elements, width = SIZES[kind]
    raw = rng.integers(0, 256, (6, width), dtype=np.uint8)
    for at in {"Q4_1": (0, 2), "Q5_1": (0, 2), "Q4_K": (0, 2), "Q6_K": (208,)}.get(kind, (0,)):
        raw[:, at : at + 2] = rng.standard_normal(6).astype("<f2").view(np.uint8).reshape(6, 2)
        raw[5, at : at + 2] = (3, 0)  # a subnormal number
    path = tmp_path / "x.gguf"
    path.write_bytes(written({"w": ((3, 2 * elements), number, raw.tobytes())}))
    got = weft.load_gguf(path)[0]["w"]
    want = [[element(kind, [int(v) for v in b], i) for i in range(elements)] for b in raw]
    np.testing.assert_allclose(got.numpy(), np.reshape(want, (3, -1)), rtol=1e-6, atol=1e-9)
    kept = weft.load_gguf(path, quantized=True)[0]["w"]
    assert kept.kind == kind and kept.shape == (3, 2 * elements)
    assert (kept.blocks.numpy() == raw).all() and (kept.dequantize().numpy() == got.numpy()).all()


def test_plain_types_and_metadata(rng, tmp_path):
    a = rng.standard_normal((2, 3))
    metadata = text("name") + struct.pack("<I", 8) + text("tiny")
    metadata += text("sizes") + struct.pack("<IIQ", 9, 4, 3) + struct.pack("<III", 1, 2, 3)
    metadata += text("words") + struct.pack("<IIQ", 9, 8, 2) + text("a") + text("b")
    metadata += text("rate") + struct.pack("<If", 6, 0.5) + text("on") + struct.pack("<I?", 7, True)
    metadata += text("general.alignment") + struct.pack("<II", 4, 64)
    tensors = {
        "f": ((2, 3), 0, a.astype("<f4").tobytes()), "h": ((2, 3), 1, a.astype("<f2").tobytes()), "d": ((3, 2), 28, a.astype("<f8").tobytes()),
        "b": ((6,), 30, (a.astype("<f4").view("<u4") >> 16).astype("<u2").tobytes()), "i": ((), 26, struct.pack("<i", -5)), "none": ((0, 4), 0, b""),
    }  # fmt: skip
    path = tmp_path / "x.gguf"
    path.write_bytes(written(tensors, metadata, 6, 2, 64))
    got, found = weft.load_gguf(path)
    assert found == {"name": "tiny", "sizes": [1, 2, 3], "words": ["a", "b"], "rate": 0.5, "on": True, "general.alignment": 64}  # fmt: skip
    assert (got["f"].numpy() == a.astype("f4")).all() and (got["h"].numpy() == a.astype("f2")).all()
    assert (got["d"].numpy() == a.reshape(3, 2)).all() and got["i"].item() == -5
    assert got["b"].dtype == weft.bfloat16 and got["none"].shape == (0, 4)
    np.testing.assert_allclose(got["b"].astype("float32").numpy(), a.ravel(), rtol=1e-2)


HEAD = b"GGUF" + struct.pack("<IQQ", 3, 1, 0)
ONE = {"w": ((4,), 0, b"\0" * 16)}
key = lambda rest: written({}, text("k") + rest, 1)  # noqa: E731
BAD = [
    (b"GGUF", "truncated", "too few for a header"),
    (b"XXXX" + b"\0" * 40, "magic", "does not begin"),
    (written(ONE, version=9), "version", "version 9"),
    (HEAD + b"\0" * 4, "truncated", "ends inside"),
    (b"GGUF" + struct.pack("<IQQ", 3, 2**40, 0), "limit", "1099511627776 tensors"),
    (HEAD + struct.pack("<Q", 2**60), "limit", "bytes of a tensor's name"),
    (written(ONE)[:70], "range", "places 'w'"),
    (written({"w": ((4,), 99, b"")}), "type", "known: float32"),
    (written({"w": ((33,), 8, b"\0" * 34)}), "tensor", "multiple of 32"),
    (HEAD[:8] + struct.pack("<QQ", 2, 0) + (text("w") + struct.pack("<IIQ", 0, 0, 0)) * 2 + b"\0" * 64, "tensor", "twice"),
    (key(struct.pack("<I", 77)), "value", "type 77"),
    (written({}, text("general.alignment") + struct.pack("<II", 4, 0), 1), "value", "alignment 0"),
    (key(struct.pack("<IQ", 8, 2) + b"\xff\xfe"), "text", "UTF-8"),
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(BAD)))
def test_damaged_files(tmp_path, case):
    raw, code, said = BAD[case]
    path = tmp_path / "x.gguf"
    path.write_bytes(raw)
    with pytest.raises(weft.IOError, match=said) as e:
        weft.load_gguf(path)
    assert e.value.code == {
        "truncated": "io.gguf.truncated", "magic": "io.gguf.magic", "version": "io.gguf.version", "limit": "io.gguf.limit", "range": "io.gguf.range",
        "type": "io.gguf.type", "tensor": "io.gguf.tensor", "value": "io.gguf.value", "text": "io.gguf.text",
    }[code]  # fmt: skip


def test_ten_thousand_damaged_files(rng, tmp_path):
    metadata = text("sizes") + struct.pack("<IIQ", 9, 4, 3) + struct.pack("<III", 1, 2, 3)
    whole = written({"w": ((2, 32), 8, bytes(range(68))), "v": ((3,), 0, b"\1" * 12)}, metadata, 1)
    path, loaded = tmp_path / "x.gguf", 0
    for k in range(10_000):
        raw = bytearray(whole)
        for _ in range(rng.integers(1, 4)):
            raw[rng.integers(0, 200)] = rng.integers(0, 256)
        if k % 3 == 0:
            raw = raw[: rng.integers(0, len(raw))]
        path.write_bytes(raw)
        try:
            weft.load_gguf(path, quantized=True)
            loaded += 1
        except weft.IOError:
            pass
    assert 0 < loaded < 10_000
