# SPDX-License-Identifier: Apache-2.0
"""A module written as C: compiled for this host it runs, with an independent interpreter of the instruction words
standing in for the chip; for ARM hosts it compiles where their compiler is present."""

import ctypes
import shutil
import subprocess

import numpy as np
import pytest
from weft.vta import op

import weft

pytestmark = pytest.mark.targets("vta")

needs_cc = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler (cc)")


def bits(word, low, high):
    return (word >> low) & ((1 << (high - low + 1)) - 1)


class Chip:
    """The default machine's instructions, read from the bits of the manual's table; tokens are ignored because the
    stream is run in order."""

    def __init__(self, memory):
        self.memory = memory  # uint8, addressed from 0
        self.uop = np.zeros(8192, np.uint32)
        self.inp = np.zeros((2048, 16), np.int8)
        self.wgt = np.zeros((1024, 16, 16), np.int8)
        self.acc = np.zeros((2048, 16), np.int32)

    def elements(self, dtype, shape, first, count):
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        raw = self.memory[first * size : (first + count) * size]
        return raw.view(dtype).reshape(count, *shape)

    def load(self, word):
        kind = bits(word, 7, 9)
        sram, dram = bits(word, 10, 25), bits(word, 26, 57)
        y, x, stride = bits(word, 64, 79), bits(word, 80, 95), bits(word, 96, 111)
        pads = [bits(word, low, low + 3) for low in (112, 116, 120, 124)]
        target, dtype, shape = {
            0: (self.uop, np.uint32, ()),
            1: (self.wgt, np.int8, (16, 16)),
            2: (self.inp, np.int8, (16,)),
            3: (self.acc, np.int32, (16,)),
            5: (self.acc, np.int8, (16,)),
        }[kind]
        if x == 0:
            return
        width = pads[2] + x + pads[3]
        rows = np.zeros((pads[0] + y + pads[1], width, *shape), target.dtype)
        for i in range(y):
            rows[pads[0] + i, pads[2] : pads[2] + x] = self.elements(
                dtype, shape, dram + i * stride, x
            )
        target[sram : sram + rows.shape[0] * width] = rows.reshape(-1, *shape)

    def store(self, word):
        sram, dram = bits(word, 10, 25), bits(word, 26, 57)
        y, x, stride = bits(word, 64, 79), bits(word, 80, 95), bits(word, 96, 111)
        for i in range(y if x else 0):
            self.elements(np.int8, (16,), dram + i * stride, x)[:] = self.acc[
                sram + i * x : sram + (i + 1) * x
            ].astype(np.int8)

    def compute(self, word, gemm):
        begin, end = bits(word, 8, 20), bits(word, 21, 34)
        extents = bits(word, 35, 48), bits(word, 49, 62)
        dst, src = (
            (bits(word, 64, 74), bits(word, 75, 85)),
            (bits(word, 86, 96), bits(word, 97, 107)),
        )
        wgt = bits(word, 108, 117), bits(word, 118, 127)
        code, use_imm, imm = bits(word, 108, 110), bits(word, 111, 111), bits(word, 112, 127)
        imm = imm - (1 << 16) if imm >> 15 else imm
        for y in range(extents[0]):
            for x in range(extents[1]):
                for u in self.uop[begin:end]:
                    d = bits(int(u), 0, 10) + y * dst[0] + x * dst[1]
                    s = bits(int(u), 11, 21) + y * src[0] + x * src[1]
                    if gemm:
                        w = bits(int(u), 22, 31) + y * wgt[0] + x * wgt[1]
                        if bits(word, 7, 7):
                            self.acc[d] = 0
                        else:
                            self.acc[d] += self.wgt[w].astype(np.int32) @ self.inp[s].astype(
                                np.int32
                            )
                        continue
                    other = np.int32(imm) if use_imm else self.acc[s].copy()
                    self.acc[d] = {
                        0: lambda a, b: np.minimum(a, b),
                        1: lambda a, b: np.maximum(a, b),
                        2: lambda a, b: a + b,
                        3: lambda a, b: np.where(
                            b >= 0, a >> np.maximum(b, 0), a << np.maximum(-b, 0)
                        ),
                        4: lambda a, b: a * b,
                    }[code](self.acc[d], other)

    def run(self, at, count):
        words = self.memory[at : at + 16 * count].view(np.uint64)
        for i in range(count):
            word = int(words[2 * i]) | int(words[2 * i + 1]) << 64
            code = bits(word, 0, 2)
            if code == 0:
                self.load(word)
            elif code == 1:
                self.store(word)
            elif code in (2, 4):
                self.compute(word, code == 2)
            elif i + 1 != count:
                return 1
        return 0


class Host(ctypes.Structure):
    _fields_ = [
        ("user", ctypes.c_void_p),
        ("allocate", ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64)),
        ("release", ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)),
        ("physical", ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_void_p, ctypes.c_void_p)),
        ("run", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint32)),
    ]


class Board:
    """Memory, and callbacks for the C text."""

    def __init__(self, limit=1 << 22):
        raw = np.zeros(limit + 4096, np.uint8)
        skip = -raw.ctypes.data % 4096
        self.memory, self.top, self.live = raw[skip : skip + limit], 4096, 0
        self.base, self.chip = self.memory.ctypes.data, Chip(self.memory)
        fields = dict(Host._fields_)
        self.host = Host(
            None,
            fields["allocate"](lambda user, size: self.allocate(size) or None),
            fields["release"](lambda user, p: self.release()),
            fields["physical"](lambda user, p: p - self.base),
            fields["run"](lambda user, at, count: self.chip.run(at, count)),
        )

    def allocate(self, size):
        size = -(-size // 4096) * 4096
        if self.top + size > self.memory.size:
            return 0
        self.top += size
        self.live += 1
        return self.base + self.top - size

    def release(self):
        self.live -= 1

    def array(self, value):
        at = self.allocate(value.nbytes) - self.base
        view = self.memory[at : at + value.nbytes].view(value.dtype).reshape(value.shape)
        view[:] = value
        return view


@needs_cc
@pytest.mark.parametrize("case", ["matmul", "conv"])
def test_the_c_text_computes_what_numpy_does(case, tmp_path):
    rng = np.random.default_rng(5)
    if case == "matmul":
        func = op.matmul(5, 19, 23, bias=True, dtype="int32")
        a, b = (rng.integers(-128, 128, s).astype(np.int8) for s in ((5, 23), (23, 19)))
        bias = rng.integers(-9999, 9999, 19).astype(np.int32)
        arrays, want = [a, b, bias], a.astype(np.int32) @ b.astype(np.int32) + bias
    else:
        func = op.conv2d(1, 3, 6, 5, 4, 3, pad=1, shift=4, clip=(-100, 100))
        x, w = (rng.integers(-128, 128, s).astype(np.int8) for s in ((1, 3, 6, 5), (4, 3, 3, 3)))
        padded = np.pad(x.astype(np.int32), ((0, 0), (0, 0), (1, 1), (1, 1)))
        total = sum(
            np.einsum(
                "ncyx,oc->noyx", padded[:, :, p : p + 6, q : q + 5], w[:, :, p, q].astype(np.int32)
            )
            for p in range(3)
            for q in range(3)
        )
        arrays, want = [x, w], np.clip(total >> 4, -100, 100).astype(np.int8)
    text = weft.vta.c.source(weft.build(func, target="vta"))
    (tmp_path / "m.c").write_text(text)
    command = ["cc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-O1", "-shared", "-fPIC", "-o"]
    subprocess.run([*command, tmp_path / "m.so", tmp_path / "m.c"], check=True)
    main = ctypes.CDLL(str(tmp_path / "m.so")).weft_vta_main
    board = Board()
    moved = [board.array(v) for v in (*arrays, np.zeros_like(want))]
    before = board.live
    pointers = [ctypes.c_void_p(v.ctypes.data) for v in moved]
    assert main(ctypes.byref(board.host), *pointers) == 0
    np.testing.assert_array_equal(moved[-1], want)
    assert board.live == before  # everything it took was given back
    small = Board(limit=1 << 16)
    pointers = [ctypes.c_void_p(v.ctypes.data) for v in [small.array(v) for v in moved]]
    small.memory = small.memory[: small.top + 8192]
    assert main(ctypes.byref(small.host), *pointers) == 1  # WEFT_VTA_MEMORY


@pytest.mark.parametrize("compiler", ["arm-linux-gnueabihf-gcc", "aarch64-linux-gnu-gcc"])
def test_it_compiles_for_arm_hosts(compiler, tmp_path):
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    net = weft.vta.net.resnet18(weft.vta.env(), size=32, classes=10)
    funcs = {layer.name: layer.func for layer in net.layers if layer.name != "probabilities"}
    for name in ("conv1", "pool1", "stage2.1.conv2", "pool2"):
        path = tmp_path / f"{name}.c"
        path.write_text(weft.vta.c.source(weft.build(funcs[name], target="vta")))
        command = [compiler, "-std=c99", "-Wall", "-Wextra", "-Werror", "-O1", "-c", path, "-o"]
        subprocess.run([*command, path.with_suffix(".o")], check=True)
        head = path.with_suffix(".o").read_bytes()[:20]
        assert head[:4] == b"\x7fELF" and head[18] == (40 if "arm-" in compiler else 183)


def test_foreign_bytes_are_refused():
    with pytest.raises(ValueError, match="no VTA program"):
        weft.vta.c.Binary(b"WVTA" + b"\x01" * 40)
