# SPDX-License-Identifier: Apache-2.0
"""Schedules of VTA programs, step by step and at random: what builds equals NumPy, what does not names a rule."""

import random

import numpy as np
import pytest

import weft
from weft import script as T
from weft import te

pytestmark = pytest.mark.targets("vta")
SEEDS = range(60)


def packed_matmul(env, o, m, n, shift=None):
    """C[o, m] = int8((A[o, n] . B[m, n]) >> shift) over the machine's tiles: the low bits."""
    A = te.placeholder((o, n, env.BATCH, env.BLOCK_IN), env.inp_dtype, name="A")
    B = te.placeholder((m, n, env.BLOCK_OUT, env.BLOCK_IN), env.wgt_dtype, name="B")
    A_buf = te.compute(A.shape, lambda *i: A[i], "A_buf")
    B_buf = te.compute(B.shape, lambda *i: B[i], "B_buf")
    ko, ki = te.reduce_axis((0, n), name="ko"), te.reduce_axis((0, env.BLOCK_IN), name="ki")
    shape = (o, m, env.BATCH, env.BLOCK_OUT)
    last = te.compute(
        shape,
        lambda bo, co, bi, ci: te.sum(
            A_buf[bo, ko, bi, ki].astype("int32") * B_buf[co, ko, ci, ki].astype("int32"),
            axis=[ko, ki],
        ),
        name="C_buf",
    )
    if shift is not None:
        total = last
        last = te.compute(shape, lambda *i: total[i] >> shift, name="shifted")
    C = te.compute(shape, lambda *i: last[i].astype("int8"), name="C")
    return te.create_prim_func([A, B, C])


def check(env, module, o, m, n, shift, seed):
    rng = np.random.default_rng(seed)
    a = rng.integers(-128, 128, (o, n, env.BATCH, env.BLOCK_IN)).astype(np.int8)
    b = rng.integers(-128, 128, (m, n, env.BLOCK_OUT, env.BLOCK_IN)).astype(np.int8)
    want = np.einsum("onbk,mnck->ombc", a.astype(np.int64), b.astype(np.int64))
    want = (want >> (shift or 0)).astype(np.int8)
    device = weft.device(env.target)
    arrays = [weft.asarray(x, device=device) for x in (a, b, np.zeros(want.shape, np.int8))]
    result = module.time_evaluator("main", number=1)(*arrays)
    np.testing.assert_array_equal(arrays[2].numpy(), want)
    return result.cycles


def scopes(env, sch):
    for name, scope in (("A_buf", env.inp_scope), ("B_buf", env.wgt_scope)):
        sch.set_scope(sch.get_block(name), 0, scope)
    for name in ("C_buf", "shifted"):
        try:
            sch.set_scope(sch.get_block(name), 0, env.acc_scope)
        except weft.Error:
            assert name == "shifted"


def tiled(env, o, m, n, tiles, threads, shift=None):
    """A product in tiles; `threads` > 1: neighbouring row tiles are virtual threads."""
    sch = weft.Schedule(packed_matmul(env, o, m, n, shift))
    scopes(env, sch)
    c = sch.get_block("C_buf")
    bo, co, bi, ci, ko, ki = sch.get_loops(c)
    b0, b1 = sch.split(bo, [None, tiles[0]])
    outer = [b0]
    if threads > 1:
        b0, thread = sch.split(b0, [None, threads])
        outer = [b0, thread]
    c0, c1 = sch.split(co, [None, tiles[1]])
    k0, k1 = sch.split(ko, [None, tiles[2]])
    sch.reorder(c0, *outer, k0, k1, b1, c1, bi, ci, ki)
    for name in ("A_buf", "B_buf"):
        sch.compute_at(sch.get_block(name), k0)
    if shift is not None:
        sch.reverse_compute_at(sch.get_block("shifted"), outer[-1])
    sch.reverse_compute_at(sch.get_block("C"), outer[-1])
    if threads > 1:
        sch.bind(thread, "vthread")
    sch.decompose_reduction(c, k0)
    sch.tensorize(bi, env.gemm)
    return sch


@pytest.mark.parametrize("config", ["sim", "4x8x8", "1x32x32"])
@pytest.mark.parametrize("threads", [1, 2, 4])
def test_virtual_threads_are_a_step_of_the_schedule(config, threads):
    env = weft.vta.env(config)
    sch = tiled(env, 32, 4, 8, (4, 4, 2), threads, shift=6)
    assert ('"vthread"' in sch.script()) == (threads > 1)
    module = weft.build(sch, target=env.target)
    check(env, module, 32, 4, 8, 6, 1)
    # The steps can be printed and made again.
    text = str(sch.trace.as_python())
    assert ("vthread" in text) == (threads > 1) and "tensorize" in text
    again = weft.Schedule.replay(packed_matmul(env, 32, 4, 8, 6), sch.trace.as_json())
    assert again.script() == sch.script()


def test_virtual_threads_interleave_and_have_their_own_places():
    env = weft.vta.env()
    lines = {}
    for threads in (1, 2):
        sch = tiled(env, 32, 4, 8, (4, 4, 2), threads)
        source = weft.build(sch, target=env.target).source().splitlines()
        lines[threads] = [line for line in source if line.startswith("%")]
    kinds = [
        "".join(
            "L" if "\tload\t" in line else "G" if "gemm run" in line else ""
            for line in lines[threads]
        )
        for threads in (1, 2)
    ]
    # As many loads between two products of one thread as between four of two: the copies interleave.
    assert {len(run) for run in kinds[0].strip("G").split("G")} == {2}, kinds[0]
    assert {len(run) for run in kinds[1].replace("GG", "G").strip("G").split("G")} == {4}, kinds[1]
    assert kinds[1].count("GG") == kinds[1].count("G") // 2


def shifted_twice(env, o, m, n, keep):
    """int8((p >> 1) >> 1), with keep also + (p >> 1), p a product over tiles: each step in a buffer of its own."""
    A = te.placeholder((o, n, env.BATCH, env.BLOCK_IN), "int8", name="A")
    B = te.placeholder((m, n, env.BLOCK_OUT, env.BLOCK_IN), "int8", name="B")
    ko, ki = te.reduce_axis((0, n), name="ko"), te.reduce_axis((0, env.BLOCK_IN), name="ki")
    shape = (o, m, env.BATCH, env.BLOCK_OUT)
    product = te.compute(
        shape,
        lambda bo, co, bi, ci: te.sum(
            A[bo, ko, bi, ki].astype("int32") * B[co, ko, ci, ki].astype("int32"), axis=[ko, ki]
        ),
        name="product",
    )
    once = te.compute(shape, lambda *i: product[i] >> 1, name="once")
    last = te.compute(shape, lambda *i: once[i] >> 1, name="twice")
    names = ["product", "once", "twice"]
    if keep:
        twice = last
        last = te.compute(shape, lambda *i: twice[i] + once[i], name="both")
        names.append("both")
    C = te.compute(shape, lambda *i: last[i].astype("int8"), name="C")
    sch = weft.Schedule(te.create_prim_func([A, B, C]))
    for name in names:
        sch.set_scope(sch.get_block(name), 0, "vta.acc")
    total = sch.get_block("product")
    loads = sch.cache_read(total, 0, "vta.inp"), sch.cache_read(total, 1, "vta.wgt")
    bo, co, bi, ci, ko, ki = sch.get_loops(total)
    sch.reorder(bo, ko, co, bi, ci, ki)
    for block in loads:
        sch.compute_at(block, ko)
    for name in [*names[1:], "C"]:
        sch.reverse_compute_at(sch.get_block(name), bo)
    sch.decompose_reduction(total, ko)
    sch.tensorize(bi, env.gemm)
    return sch


@pytest.mark.parametrize("keep", [False, True])
def test_chains_of_buffers_become_one_where_nothing_is_read_again(keep):
    env = weft.vta.env()
    o, m, n = 3, 2, 2
    module = weft.build(shifted_twice(env, o, m, n, keep), target=env.target)
    resets = [line for line in module.source().splitlines() if "gemm reset" in line]
    # Of the sums alone; "once" is read again after "twice" was made of it, which needs a copy.
    assert len(resets) == (2 * o if keep else o), module.source()
    rng = np.random.default_rng(5)
    a = rng.integers(-128, 128, (o, n, env.BATCH, env.BLOCK_IN)).astype(np.int8)
    b = rng.integers(-128, 128, (m, n, env.BLOCK_OUT, env.BLOCK_IN)).astype(np.int8)
    want = np.einsum("onbk,mnck->ombc", a.astype(np.int64), b.astype(np.int64))
    want = ((want >> 2) + (want >> 1 if keep else 0)).astype(np.int8)
    device = weft.device(env.target)
    arrays = [weft.asarray(x, device=device) for x in (a, b, np.zeros(want.shape, np.int8))]
    module["main"](*arrays)
    np.testing.assert_array_equal(arrays[2].numpy(), want)


def random_steps(env, sch, rng, log):
    """A random walk over public primitives; refused steps leave the schedule as it was."""

    def block(*names):
        return sch.get_block(rng.choice(names))

    def loop(name=None):
        loops = sch.get_loops(block(name or rng.choice(["C_buf", "A_buf", "B_buf", "C"])))
        return rng.choice(loops)

    def some(loops):
        picked = rng.sample(loops, rng.randint(2, min(4, len(loops))))
        return picked

    def neighbours(loops):
        first = rng.randrange(len(loops) - 1)
        return loops[first : first + 2]

    steps = {
        "split": lambda: sch.split(loop(), [None, rng.choice([1, 2, 3, 4, 5])]),
        "reorder": lambda: sch.reorder(*some(sch.get_loops(block("C_buf")))),
        "fuse": lambda: sch.fuse(*neighbours(sch.get_loops(block("C_buf", "C", "A_buf")))),
        "compute_at": lambda: sch.compute_at(block("A_buf", "B_buf"), loop("C_buf")),
        "reverse_compute_at": lambda: sch.reverse_compute_at(block("C"), loop("C_buf")),
        "bind": lambda: sch.bind(loop(), "vthread"),
        "unroll": lambda: sch.unroll(loop()),
        "vectorize": lambda: sch.vectorize(loop()),
        "parallel": lambda: sch.parallel(loop()),
        "annotate": lambda: sch.annotate(loop(), env.dma_copy, 1),
        "cache_read": lambda: sch.cache_read(
            block("C_buf"), rng.randrange(2), rng.choice([env.inp_scope, env.wgt_scope, "global"])
        ),
        "cache_write": lambda: sch.cache_write(block("C_buf", "C"), 0, env.acc_scope),
        "set_scope": lambda: sch.set_scope(
            block("A_buf", "B_buf", "C_buf"), 0, rng.choice(["vta.inp", "vta.wgt", "vta.acc"])
        ),
        "decompose_reduction": lambda: sch.decompose_reduction(block("C_buf"), loop("C_buf")),
        "tensorize": lambda: sch.tensorize(loop("C_buf"), env.gemm),
        "compute_inline": lambda: sch.compute_inline(block("A_buf", "B_buf", "C_buf")),
    }
    rare = {"vectorize", "parallel", "cache_read", "cache_write", "set_scope", "compute_inline"}
    names = [n for n in steps for _ in range(1 if n in rare else 4)]
    for _ in range(rng.randint(2, 9)):
        name, before = rng.choice(names), sch.script()
        try:
            steps[name]()
            log.append(name)
        except weft.ScheduleError as refusal:
            assert refusal.code and "internal" not in refusal.code, refusal
            assert sch.script() == before, f"{name} was refused and changed the program"
            log.append(f"({refusal.code})")


def run_random(seed):
    """(did it build, the steps, the refusal's slug)."""
    rng, log = random.Random(seed), []
    env = weft.vta.env(rng.choice(["sim", "sim", "4x8x8", "1x32x32"]))
    o, m, n = (rng.choice([1, 2, 3, 4, 6]) for _ in range(3))
    shift = rng.choice([None, 3])
    sch = weft.Schedule(packed_matmul(env, o, m, n, shift))
    if rng.random() < 0.95:
        scopes(env, sch)
    if rng.random() < 0.5:  # a legal beginning, then at random
        c = sch.get_block("C_buf")
        bo, co, bi, ci, ko, ki = sch.get_loops(c)
        order = [bo, co, ko]
        rng.shuffle(order)
        sch.reorder(*order, bi, ci, ki)
        at = rng.choice(order)
        for name in ("A_buf", "B_buf"):
            sch.compute_at(sch.get_block(name), at)
    random_steps(env, sch, rng, log)
    try:
        module = weft.build(sch, target=env.target)
    except weft.Error as refusal:
        assert refusal.code.startswith(
            ("vta.", "stages.", "lower.", "target.", "schedule.", "pass.")
        ), refusal
        assert "internal" not in refusal.code and refusal.message, refusal
        return False, log, refusal.code
    check(env, module, o, m, n, shift, seed)
    return True, log, ""


def test_random_sequences_of_primitives():
    built, refused, steps = 0, set(), set()
    for seed in SEEDS:
        try:
            done, log, code = run_random(seed)
        except Exception:
            print("seed", seed)
            raise
        built += done
        refused |= {code} - {""}
        steps |= {s for s in log if not s.startswith("(")}
    print(f"{built} of {len(SEEDS)} built; refused: {sorted(refused)}; steps: {sorted(steps)}")
    assert built >= len(SEEDS) // 4 and len(refused) >= 3
    assert {"split", "reorder", "compute_at", "bind", "annotate", "fuse"} <= steps


@T.prim_func
def halves(
    A: T.Buffer((6, 16), "int32"), D: T.Buffer((3, 16), "int32"), C: T.Buffer((6, 16), "int8")
):
    a = T.alloc_buffer((6, 16), "int32", scope="vta.acc")
    d = T.alloc_buffer((3, 16), "int32", scope="vta.acc")
    for i, l in T.grid(6, 16):
        with T.block("a"):
            vi, vl = T.axis.remap("SS", [i, l])
            a[vi, vl] = A[vi, vl]
    for i, l in T.grid(3, 16):
        with T.block("d"):
            vi, vl = T.axis.remap("SS", [i, l])
            d[vi, vl] = D[vi, vl]
    for i, l in T.grid(6, 16):
        with T.block("sum"):
            vi, vl = T.axis.remap("SS", [i, l])
            a[vi, vl] = (a[vi, vl] + 5) + d[vi // 2, vl]
    for i, l in T.grid(6, 16):
        with T.block("C"):
            vi, vl = T.axis.remap("SS", [i, l])
            C[vi, vl] = T.Cast("int8", a[vi, vl])


def test_a_nest_refused_half_way_leaves_nothing():
    """The addition of 5 is one instruction over all rows; d's index is none, so the rows are done one by one."""
    module = weft.build(halves, target="vta")
    device = weft.device("vta")
    rng = np.random.default_rng(3)
    a, d = (rng.integers(-50, 50, (n, 16)).astype(np.int32) for n in (6, 3))
    arrays = [weft.asarray(x, device=device) for x in (a, d, np.zeros((6, 16), np.int8))]
    module["halves"](*arrays)
    want = (a + 5 + d.repeat(2, axis=0)).astype(np.int8)
    np.testing.assert_array_equal(arrays[2].numpy(), want)
    assert module.source().count("add imm 5") == 6


# T.where of a block on chip, as T-script and for NumPy: bounds from below and above, of one loop and of several.
GUARDS = {
    "a >= 2": lambda a, b: a >= 2,
    "a > 2": lambda a, b: a > 2,
    "a <= 4": lambda a, b: a <= 4,
    "4 > a": lambda a, b: a < 4,
    "a >= 1 and a < 4": lambda a, b: (a >= 1) & (a < 4),
    "b >= 2 and b < 4 and a > 0": lambda a, b: (b >= 2) & (b < 4) & (a > 0),
    "a * 2 >= 5": lambda a, b: a * 2 >= 5,
    "b * 3 + 1 > 7": lambda a, b: b * 3 + 1 > 7,
    "5 - a >= 2": lambda a, b: a <= 3,
    "a + b < 6": lambda a, b: a + b < 6,
    "a - b >= 0": lambda a, b: a >= b,
    "a + b >= 0": lambda a, b: a >= 0,
    "a + b >= 100": lambda a, b: a < 0,
    "1 < 0": lambda a, b: a < 0,
    "a == 2": lambda a, b: a == 2,
    "b != 2": lambda a, b: b != 2,
    "a >= 2 or b >= 1": lambda a, b: (a >= 2) | (b >= 1),
    "T.bitwise_and(a >= 2, b >= 1)": lambda a, b: (a >= 2) & (b >= 1),
    "T.bitwise_and(a < 3, T.bitwise_and(b > 0, b < 4))": lambda a, b: (a < 3) & (b > 0) & (b < 4),
    "a * b < 6": lambda a, b: a * b < 6,
    "2 < a * b": lambda a, b: a * b > 2,
    "a // 2 == 1 and b % 2 == 0": lambda a, b: (a // 2 == 1) & (b % 2 == 0),
}


@pytest.mark.parametrize("shape", [(6, 5), (1, 5), (6, 1), (1, 1)])
@pytest.mark.parametrize("guard", GUARDS)
def test_guards_of_blocks_on_chip(guard, shape):
    h, w = shape
    program = weft.script.from_source(f"""from weft import script as T

@T.prim_func
def main(A: T.Buffer(({h}, {w}, 1, 16), "int32"), C: T.Buffer(({h}, {w}, 1, 16), "int8")):
    X = T.alloc_buffer(({h}, {w}, 1, 16), "int32", scope="vta.acc")
    for a, b, c, d in T.grid({h}, {w}, 1, 16):
        with T.block("X"):
            i, j, k, l = T.axis.remap("SSSS", [a, b, c, d])
            X[i, j, k, l] = A[i, j, k, l]
    for a, b, c, d in T.grid({h}, {w}, 1, 16):
        with T.block("Y"):
            i, j, k, l = T.axis.remap("SSSS", [a, b, c, d])
            T.where({guard})
            X[i, j, k, l] = X[i, j, k, l] + 7
    for a, b, c, d in T.grid({h}, {w}, 1, 16):
        with T.block("C"):
            i, j, k, l = T.axis.remap("SSSS", [a, b, c, d])
            C[i, j, k, l] = T.cast(X[i, j, k, l], "int8")
""")
    x = np.random.default_rng(h).integers(-50, 50, (h, w, 1, 16)).astype("int32")
    out = weft.full(x.shape, 77, dtype="int8", device="vta")
    weft.build(program, target="vta")(weft.asarray(x, device="vta"), out)
    a, b = np.ogrid[:h, :w]
    mask = np.broadcast_to(GUARDS[guard](a, b), (h, w))[:, :, None, None]
    np.testing.assert_array_equal(out.numpy(), np.where(mask, x + 7, x).astype("int8"))
