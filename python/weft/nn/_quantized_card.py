# SPDX-License-Identifier: Apache-2.0
"""The card's program for few rows by a quantized weight: threads read 16 packed outputs at a time along a run of one
group's inputs, and the threads of a block add up what they have for the same outputs.

Steps are taken from words of four bytes without shifts and conversions. The bits u of a step, where they lie in a half
word, are put into the mantissa of 2^23: that is the float32 number 2^23 + u 2^place. Less 2^23 and what stands for 0,
it is multiplied by x / 2^place, which is made once for the outputs of a thread."""

from __future__ import annotations

import functools

import weft

from .. import te

_LANES = 16  # outputs of a thread: a vector of 16 bytes
_RUN = 16  # packed rows of a thread, at most
_BYTES = 4  # of a word
EXPONENT = 0x4B000000  # the bits of 2^23; an argument, so that one instruction joins a mask and it


def form(inputs, outputs, size, bits, most):
    """`most`: threads of a block. (packed rows of a thread, threads that share an output, threads beside each other), or None where sizes do not fit."""
    packed = size * bits // 8
    run = max((n for n in range(1, min(_RUN, packed) + 1) if packed % n == 0), default=0)
    runs = inputs * bits // 8 // run if run else 0
    beside = next((n for n in (4, 2, 1) if outputs % (n * _LANES) == 0), 0)
    fits = (n for n in (256, 128, 64, 32, 16) if runs % n == 0 and n * beside <= most)
    threads = next(fits, 0)
    return (run, threads, beside) if run >= 4 and threads and beside else None


def _int32(value):
    return te.const(value, "int32")


def _program(rows, inputs, outputs, size, bits, dtype, has_zeros, has_bias, run):
    per = 8 // bits
    groups, packed = inputs // size, size // per
    runs = packed // run  # of a group
    x = te.placeholder((rows, inputs), dtype, name="x")
    w = te.placeholder((inputs // per, outputs // _BYTES), "int32", name="w")
    s = te.placeholder((groups, outputs), "float32", name="scales")
    z = te.placeholder((groups, outputs), "float32", name="zeros")
    b = te.placeholder((outputs,), "float32", name="bias")
    exponent = te.var("exponent", "int32")
    r, h = te.reduce_axis((0, run), name="r"), te.reduce_axis((0, per), name="h")

    def factor(i, g):
        return x[i, (g // runs) * size + g % runs * run + r + h * packed].astype("float32")

    def term(i, g, j):
        byte = te.cast("int32", j % _BYTES)
        word = w[g * run + r, j // _BYTES]
        if bits == 8:  # from -128 .. 127 to 0 .. 255
            word = te.bitwise_xor(word, _int32(-0x7F7F7F80))
        place = byte % _int32(2) * _int32(8) + te.cast("int32", h) * _int32(4)
        half = te.shift_right(word, te.truncdiv(byte, _int32(2)) * _int32(16))
        step = te.bitwise_and(half, te.shift_left(_int32(2**bits - 1), place))
        zero = te.bitwise_or(_int32(EXPONENT), te.shift_left(_int32(2 ** (bits - 1)), place))
        step, zero = (
            te.reinterpret("float32", te.bitwise_or(step, exponent)),
            te.reinterpret("float32", zero),
        )
        inverse = te.reinterpret("float32", te.shift_left(_int32(127) - place, _int32(23)))
        return factor(i, g) * inverse * (step - zero)

    all_runs = groups * runs
    part = te.compute(
        (rows, all_runs, outputs),
        lambda i, g, j: te.sum(term(i, g, j), axis=[r, h]),
        name="part",
    )
    both = te.compute((rows, all_runs), lambda i, g: te.sum(factor(i, g), axis=[r, h]), name="both")
    k = te.reduce_axis((0, all_runs), name="k")

    def of_run(i, j):
        value = part[i, k, j] - both[i, k] * z[k // runs, j] if has_zeros else part[i, k, j]
        return value * s[k // runs, j]

    y = te.compute((rows, outputs), lambda i, j: te.sum(of_run(i, j), axis=k), name="y")
    out = te.compute(
        (rows, outputs),
        lambda i, j: (y[i, j] + b[j] if has_bias else y[i, j]).astype(dtype),
        name="out",
    )
    given = [x, w, s, *([z] if has_zeros else []), *([b] if has_bias else [])]
    return te.create_prim_func([*given, out, exponent])


def _schedule(program, threads, beside, has_zeros):
    sch = weft.Schedule(program)
    y, part, out = (sch.get_block(n) for n in ("y", "part", "out"))
    both = [sch.get_block("both")] if has_zeros else []
    i, j, k = sch.get_loops(y)
    across, column, lane = sch.split(j, [None, beside, _LANES])
    outer, share = sch.split(k, [None, threads])
    sch.reorder(i, across, share, column, outer, lane)
    own = sch.rfactor(share, 0)  # the sums of one thread
    sch.set_scope(own, 0, "shared")
    loops = sch.get_loops(y)
    i, across, share, column, lane = (*loops[:4], loops[-1])
    wide = beside * _LANES
    high, low = sch.split(share, [threads // _LANES, None])
    sch.reorder(i, across, column, lane, high, low)
    columns = sch.fuse(column, lane)
    sch.bind(i, "blockIdx.y")
    sch.bind(across, "blockIdx.x")
    sch.bind(high, "threadIdx.y")
    sch.bind(columns, "threadIdx.x")
    sch.compute_at(own, across)
    _bind_own(sch, own, wide)
    outer = sch.get_loops(own)[-2]
    for block in (part, *both):
        sch.set_scope(block, 0, "local")
        sch.compute_at(block, outer, preserve_unit_loops=True)
    for loop in (loop for block in both for loop in sch.get_loops(block)[-2:]):
        sch.unroll(loop)
    *_, lane, r, h = sch.get_loops(part)
    word, byte = sch.split(lane, [None, _BYTES])
    sch.reorder(r, h, byte, word)
    start = sch.decompose_reduction(part, r)
    for loop in (r, h, byte, sch.get_loops(start)[-2]):
        sch.unroll(loop)
    begin = sch.decompose_reduction(own, outer)
    for block in (part, start, own, begin):
        sch.vectorize(sch.get_loops(block)[-1])
    sch.reverse_compute_at(out, columns)
    sch.set_scope(y, 0, "shared")
    return sch


def _bind_own(sch, own, wide):
    """A thread for each share and vector of columns; a serial loop over its runs, then the lanes."""
    share, columns, *outer = sch.get_loops(own)[2:]
    column, lane = sch.split(columns, [None, _LANES])
    if outer:
        sch.reorder(share, column, outer[0], lane)
    high, low = sch.split(sch.fuse(share, column), [None, wide])
    sch.bind(high, "threadIdx.y")
    sch.bind(low, "threadIdx.x")
    if not outer:
        sch.add_unit_loop(lane)


@functools.lru_cache(maxsize=256)
def dequantizer(target, sizes, dtype, has_zeros):
    """sizes: inputs, outputs, inputs of a group, bits. A function of weight, scales, zeros and the weight as `dtype`."""
    inputs, outputs, size, bits = sizes
    per = 8 // bits
    packed = size // per
    w = te.placeholder((inputs // per, outputs), "int8" if bits == 8 else "uint8", name="w")
    s = te.placeholder((inputs // size, outputs), "float32", name="scales")
    z = te.placeholder((inputs // size, outputs), "float32", name="zeros")

    def value(k, j):
        group, at = k // size, k % size
        word = te.cast("int32", w[group * packed + at % packed, j])
        if bits == 4:
            word = te.shift_right(word, te.cast("int32", at // packed * 4))
            word = te.bitwise_and(word, te.const(15, "int32")) - te.const(8, "int32")
        step = te.cast("float32", word)
        step = step - z[group, j] if has_zeros else step
        return (step * s[group, j]).astype(dtype)

    out = te.compute((inputs, outputs), value, name="out")
    program = te.create_prim_func([w, s, *([z] if has_zeros else []), out])
    return weft.build(program, target=target, tuned=False)["main"]


@functools.lru_cache(maxsize=256)
def kernel(target, most, sizes, dtype, has_zeros, has_bias):
    """sizes: rows, inputs, outputs, inputs of a group, bits. A function of x, the weight's words, scales, zeros, bias, the result and EXPONENT, or None where sizes do not fit."""
    rows, inputs, outputs, size, bits = sizes
    found = form(inputs, outputs, size, bits, most)
    if found is None:
        return None
    run, threads, beside = found
    program = _program(rows, inputs, outputs, size, bits, dtype, has_zeros, has_bias, run)
    return weft.build(_schedule(program, threads, beside, has_zeros), target=target, tuned=False)[
        "main"
    ]
