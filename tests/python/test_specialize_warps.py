# SPDX-License-Identifier: Apache-2.0
"""specialize_warps: products on the interpreter and as cubins, refusals, and faults planted into its programs."""

import pathlib
import re
import sys

import numpy as np
import pytest
import weft
from refusal import refused
from weft import script as T
from weft import te

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "examples/tensorir"))
import warp_specialized as ws  # noqa: E402

SM90 = "cuda:arch=sm_90"
# (m, n, k), layout, epilogue, result, schedule
FORMS = [
    ((200, 136, 200), "NN", "bias", None, dict(columns=128, stages=3, blocks=2, group_rows=2)),
    ((72, 104, 72), "NT", None, None, dict(rows=64, columns=64, stages=2, blocks=0, group_rows=1)),
    ((136, 72, 136), "TN", None, "float32", dict(columns=64, stages=3, blocks=3)),
    ((200, 160, 64), "TT", "residual", None, dict(columns=192, stages=2, blocks=1)),
    ((136, 96, 64), "NN", "residual", None, dict(columns=128, stages=2, blocks=2)),
    ((136, 160, 136), "NN", "residual", None, dict(columns=96, stages=2, blocks=2)),
    ((72, 200, 72), "NT", "bias", None, dict(rows=64, columns=160, stages=2, blocks=1)),
    ((72, 72, 72), "NN", None, None, dict(rows=64, columns=32, stages=2, blocks=1)),
    ((2, 8, 8), "NN", "bias", None, dict(rows=64, columns=64, stages=2, blocks=2)),
    ((72, 88, 72), "NN", "bias", None, dict(rows=64, columns=80, stages=2, blocks=1)),
    ((72, 216, 72), "NT", "residual", None, dict(rows=64, columns=208, stages=2, blocks=1)),
    ((200, 152, 72), "TN", "bias", None, dict(rows=192, columns=144, stages=2, blocks=2)),
    ((392, 56, 72), "NT", None, None, dict(rows=192, columns=48, stages=2, blocks=2, cluster=2)),
    # clusters: an even and an odd number of tiles below one another
    ((200, 136, 200), "NN", "bias", None, dict(columns=128, stages=3, blocks=2, cluster=2)),
    ((136, 72, 136), "TT", "residual", None, dict(rows=64, columns=64, blocks=4, cluster=2)),
    ((264, 96, 72), "NT", None, "float32", dict(rows=64, columns=96, stages=2, cluster=4)),
    ((72, 8, 8), "TN", None, None, dict(rows=64, columns=64, stages=2, blocks=0, cluster=2)),
    # of blocks beside one another, and of rows and columns of blocks
    ((72, 200, 200), "NN", "bias", None, dict(rows=64, columns=96, stages=3, cluster_columns=2)),
    ((200, 264, 72), "TT", "residual", None, dict(columns=64, stages=2, cluster_columns=4)),
    (
        (136, 152, 200),
        "NN",
        "bias",
        None,
        dict(rows=64, columns=48, stages=2, blocks=8, group_rows=4, cluster=2, cluster_columns=2),
    ),
    (
        (264, 104, 136),
        "NT",
        "residual",
        None,
        dict(rows=64, columns=32, stages=3, blocks=8, cluster=4, cluster_columns=2),
    ),
    (
        (136, 200, 136),
        "TN",
        None,
        None,
        dict(rows=64, columns=48, stages=2, blocks=16, cluster=2, cluster_columns=4),
    ),
    (
        (392, 72, 72),
        "TT",
        None,
        "float32",
        dict(rows=192, columns=16, stages=2, blocks=0, cluster=2, cluster_columns=4),
    ),
    (
        (8, 72, 72),
        "NT",
        None,
        None,
        dict(rows=64, columns=16, stages=2, blocks=0, cluster_columns=8),
    ),
    # rows of the tile lie along the columns of the result
    ((152, 200, 72), "NN", "residual", None, dict(rows=80, columns=128, stages=2, blocks=2)),
    (
        (104, 264, 72),
        "TT",
        None,
        "float32",
        dict(rows=48, columns=64, stages=2, blocks=2, cluster=2),
    ),
    (
        (104, 264, 72),
        "NN",
        None,
        None,
        dict(rows=48, columns=64, stages=2, blocks=4, cluster=2, cluster_columns=2),
    ),
    # sums of one, two and three of seven steps, in registers of their own
    ((136, 72, 448), "NN", "bias", None, dict(columns=80, stages=3, blocks=2, promote=1)),
    ((72, 200, 440), "TN", None, "float32", dict(columns=192, stages=2, blocks=2, promote=2)),
    ((200, 56, 440), "NT", "residual", None, dict(rows=192, columns=64, stages=2, promote=3)),
    (
        (264, 96, 72),
        "NT",
        None,
        "float32",
        dict(rows=64, stages=2, cluster=2, columns=96, promote=9),
    ),
    (
        (136, 104, 328),
        "TN",
        "bias",
        None,
        dict(rows=64, stages=2, cluster=2, cluster_columns=2, blocks=4, columns=48, promote=2),
    ),
]


def few(rng, *shape):
    """Few bits: sums are exact, so that both sides round once."""
    return (rng.integers(-8, 9, shape) / np.float32(8)).astype(np.float32)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("sizes, layout, epilogue, result, form", FORMS)
def test_products(sizes, layout, epilogue, result, form, dtype):
    m, n, k = sizes
    rng, device = np.random.default_rng(7), weft.device("ref")
    a, b, bias, residual = few(rng, m, k), few(rng, k, n), few(rng, n), few(rng, m, n)
    want = a @ b
    more = []
    if epilogue:
        want, more = want + bias, [weft.asarray(bias).to(device)]
    if epilogue == "residual":
        want = np.maximum(want, 0) * np.float32(0.5) + residual
        more.append(weft.asarray(residual).astype(dtype).to(device))
    A = weft.asarray(a.T.copy() if layout[0] == "T" else a).astype(dtype).to(device)
    B = weft.asarray(b.T.copy() if layout[1] == "T" else b).astype(dtype).to(device)
    D = weft.full((m, n), float("nan"), dtype=result or dtype, device=device)
    f = ws.product(m, n, k, dtype, layout, result, epilogue)
    s = ws.schedule(f, **form)
    weft.build(s, target="ref")["main"](A, B, *more, D)
    want = weft.asarray(want).astype(result or dtype).astype("float32").numpy()
    np.testing.assert_array_equal(
        D.to(weft.device("cpu")).astype("float32").numpy(), want.astype(np.float32)
    )
    again = weft.Schedule.replay(f, s.trace)
    assert again.script() == s.script()
    assert T.from_source(s.script()).script()


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2"])
@pytest.mark.parametrize("sizes, columns", [((136, 96, 272), 96), ((72, 200, 128), 128)])
def test_products_of_float8(sizes, columns, dtype):
    m, n, k = sizes
    rng, device = np.random.default_rng(9), weft.device("ref")
    a, b, bias = few(rng, m, k), few(rng, n, k), few(rng, n)
    f = ws.product(m, n, k, dtype, "NT", "float32", "bias")
    s = ws.schedule(f, rows=64, columns=columns, stages=2, blocks=2, step=128)
    A, B = (weft.asarray(x).astype(dtype).to(device) for x in (a, b))
    D = weft.full((m, n), float("nan"), dtype="float32", device=device)
    weft.build(s, target="ref")["main"](A, B, weft.asarray(bias).to(device), D)
    np.testing.assert_array_equal(D.to(weft.device("cpu")).numpy(), a @ b.T + bias)
    assert T.from_source(s.script()).script()


@pytest.mark.parametrize("check", ["run"])
def test_every_step_is_proved_by_running(check):
    form = dict(rows=64, columns=64, stages=2, blocks=2, group_rows=2)
    s = ws.schedule(ws.product(72, 72, 72, epilogue="bias"), check=check, **form)
    assert "T.token_wait(" in s.script()


def test_a_cubin_of_three_groups():
    if "NVRTC" in weft.device("cuda").reason:
        pytest.skip(f"no NVRTC: {weft.device('cuda').reason}")
    f = ws.product(4096, 4096, 4096, "bfloat16", "NN")
    built = weft.build(ws.schedule(f, rows=192, columns=176, stages=3, cluster=2), target=SM90)
    text = built.source()
    assert "m64n176k16.f32.bf16.bf16" in text and "__launch_bounds__(512, 1)" in text
    assert "weft_registers_inc_160();" in text and not built.notes, built.notes


def test_registers_of_three_groups():
    s, ko = computed(m=384, rows=192)
    error = refused(weft.ScheduleError, "schedule.specialize_warps.options", s.specialize_warps, ko)
    assert "3 times the second" in str(error) and "registers=[32, 160]" in str(error), error


def test_cubins_of_float8():
    if "NVRTC" in weft.device("cuda").reason:
        pytest.skip(f"no NVRTC: {weft.device('cuda').reason}")
    f = ws.product(4096, 4096, 4096, "float8_e4m3fn", "NT", "bfloat16")
    built = weft.build(ws.schedule(f, step=128), target=SM90)
    assert "m64n256k32.f32.e4m3.e4m3" in built.source() and not built.notes, built.notes


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_cubins(dtype):
    if "NVRTC" in weft.device("cuda").reason:
        pytest.skip(f"no NVRTC: {weft.device('cuda').reason}")
    built = weft.build(ws.schedule(ws.product(4096, 4096, 4096, dtype)), target=SM90)
    short = {"float16": "f16", "bfloat16": "bf16"}[dtype]
    text = built.source()
    assert f"m64n256k16.f32.{short}.{short}" in text and "__launch_bounds__(384, 1)" in text
    assert text.count("__syncthreads()") == 1 and "weft_registers_dec_40();" in text
    assert not any("unchecked" in note for note in built.notes), built.notes


def test_the_rule_takes_products_and_says_so():
    f = ws.product(300, 160, 96, epilogue="bias")
    built = weft.build(f, target=SM90, tuned=False)
    assert "gemm_tensor_core" in str(built.notes) and "weft_tile_multiply_" in built.source()


def begin(m=128, n=64, k=128, rows=64, columns=64, step=64, dtype="float16", result=None):
    s = weft.Schedule(ws.product(m, n, k, dtype, result=result))
    C, D = s.get_block("C"), s.get_block("D")
    a, b = (s.cache_read(C, operand, "shared") for operand in (0, 1))
    s.set_scope(C, 0, "local")
    i, j, r = s.get_loops(C)
    bi, ti = s.split(i, [None, rows])
    bj, tj = s.split(j, [None, columns])
    ko, kk = s.split(r, [None, step])
    s.reorder(bi, bj, ko, ti, tj, kk)
    s.compute_at(a, ko)
    s.compute_at(b, ko)
    return s, D, bi, bj, ko


def finish(s, D, bi, bj, ko, stages=(0, 0, 2)):
    s.reverse_compute_at(D, bj)
    s.bind(bi, "blockIdx.y")
    s.bind(bj, "blockIdx.x")
    if stages:
        s.annotate(ko, "software_pipeline_stage", list(stages))
    return ko


def unbound():
    s, D, bi, bj, ko = begin()
    s.reverse_compute_at(D, bj)
    s.annotate(ko, "software_pipeline_stage", [0, 0, 2])
    return s, ko


def computed(**kw):
    parts = begin(**kw)
    return parts[0], finish(*parts)


def without_stages():
    parts = begin()
    return parts[0], finish(*parts, stages=None)


def wrong_stages():
    parts = begin()
    return parts[0], finish(*parts, stages=(0, 1, 2))


def without_copies():
    s = weft.Schedule(ws.product(128, 64, 128))
    C, D = s.get_block("C"), s.get_block("D")
    s.set_scope(C, 0, "local")
    i, j, r = s.get_loops(C)
    bi, ti = s.split(i, [None, 64])
    bj, tj = s.split(j, [None, 64])
    ko, kk = s.split(r, [None, 64])
    s.reorder(bi, bj, ko, ti, tj, kk)
    return s, finish(s, D, bi, bj, ko, stages=(2,))


def with_a_computed_operand():
    A, B = (
        te.placeholder((64, 64), "float16", name="A"),
        te.placeholder((64, 64), "float16", name="B"),
    )
    A2 = te.compute((64, 64), lambda i, r: A[i, r] + A[i, r], name="A2")
    r = te.reduce_axis((0, 64), name="k")
    C = te.compute(
        (64, 64),
        lambda i, j: te.sum(A2[i, r].astype("float32") * B[r, j].astype("float32"), axis=r),
        name="C",
    )
    D = te.compute((64, 64), lambda i, j: C[i, j].astype("float16"), name="D")
    s = weft.Schedule(te.create_prim_func([A, B, D]))
    C, D, A2 = s.get_block("C"), s.get_block("D"), s.get_block("A2")
    b = s.cache_read(C, 1, "shared")
    s.set_scope(A2, 0, "shared")
    s.set_scope(C, 0, "local")
    i, j, k = s.get_loops(C)
    bi, ti = s.split(i, [None, 64])
    bj, tj = s.split(j, [None, 64])
    ko, kk = s.split(k, [None, 64])
    s.reorder(bi, bj, ko, ti, tj, kk)
    s.compute_at(A2, ko)
    s.compute_at(b, ko)
    return s, finish(s, D, bi, bj, ko)


def without_store():
    s, D, bi, bj, ko = begin()
    s.bind(bi, "blockIdx.y")
    s.bind(bj, "blockIdx.x")
    s.annotate(ko, "software_pipeline_stage", [0, 0, 2])
    return s, ko


@pytest.mark.parametrize(
    "slug, words, make",
    [
        ("schedule.specialize_warps.loop", "neither parallel nor bound to blockIdx", unbound),
        ("schedule.specialize_warps.pipeline", "has no annotation", without_stages),
        ("schedule.specialize_warps.pipeline", "has stages [0,1,2]", wrong_stages),
        ("schedule.specialize_warps.copy", "does not copy elements", with_a_computed_operand),
        (
            "schedule.specialize_warps.product",
            "which no block under the loop fills",
            without_copies,
        ),
        ("schedule.specialize_warps.tile", "adds up 32 terms", lambda: computed(step=32)),
        (
            "schedule.specialize_warps.tile",
            "has 32 rows",
            lambda: computed(rows=32, n=96, columns=96),
        ),
        ("schedule.specialize_warps.tile", "has 24 columns", lambda: computed(columns=24)),
        ("schedule.specialize_warps.tile", "has 1 axes longer than 1", lambda: computed(m=1)),
        ("schedule.specialize_warps.operand", "the stride 100 of axis 0", lambda: computed(n=100)),
        (
            "schedule.specialize_warps.operand",
            "does not lie in rows along the sum",
            lambda: computed(dtype="float8_e5m2", step=128),
        ),
        ("schedule.specialize_warps.store", "0 blocks follow the loop", without_store),
    ],
)
def test_refusals(slug, words, make):
    s, ko = make()
    before = s.script()
    error = refused(weft.ScheduleError, slug, s.specialize_warps, ko)
    assert words in str(error), error
    assert s.script() == before


def test_options_are_checked():
    s, ko = computed()
    for given in (
        dict(blocks=-1),
        dict(group_rows=0),
        dict(registers=[40, 250]),
        dict(cluster=3),
        dict(cluster_columns=0),
        dict(cluster=4, cluster_columns=4),
        dict(blocks=3, cluster=2),
        dict(blocks=6, cluster=2, cluster_columns=2),
        dict(promote=-1),
    ):
        refused(
            weft.ScheduleError,
            "schedule.specialize_warps.options",
            lambda given=given: s.specialize_warps(ko, **given),
        )


def test_two_sets_of_sums_need_registers():
    f = ws.product(256, 256, 128)
    error = refused(
        weft.ScheduleError,
        "schedule.specialize_warps.tile",
        lambda: ws.schedule(f, columns=208, promote=2),
    )
    assert "up to 192, which 128 rows with two sets of sums leave registers for" in str(error)
    added = [
        line
        for line in ws.schedule(f, columns=192, promote=2).script().splitlines()
        if " + added[" in line
    ]
    assert added  # by threads, rounded to nearest
    assert "added" not in ws.schedule(f, columns=192).script()


@pytest.mark.parametrize("option, axis", [("cluster", "rows"), ("cluster_columns", "columns")])
def test_clusters_need_a_loop_of_their_own(option, axis):
    s, D, bi, bj, ko = begin(n=128)
    grid = s.fuse(bi, bj)
    s.reverse_compute_at(D, grid)
    s.bind(grid, "blockIdx.x")
    s.annotate(ko, "software_pipeline_stage", [0, 0, 2])
    error = refused(
        weft.ScheduleError,
        "schedule.specialize_warps.cluster",
        lambda: s.specialize_warps(ko, **{option: 2}),
    )
    assert f"no loop of the grid moves the {axis} of the tile alone" in str(error)
    assert f"{option}=1" in str(error)


def test_clusters_share_whole_pieces():
    f = ws.product(256, 160, 128, layout="NT")
    error = refused(
        weft.ScheduleError,
        "schedule.specialize_warps.cluster",
        lambda: ws.schedule(f, rows=64, columns=80, blocks=4, cluster=4),
    )
    assert "4 blocks of a cluster cannot share the 80 rows" in str(error)
    assert "tiles of 96, or cluster=1" in str(error), error


def test_cubins_of_clusters():
    if "NVRTC" in weft.device("cuda").reason:
        pytest.skip(f"no NVRTC: {weft.device('cuda').reason}")
    f = ws.product(4096, 4096, 4096)
    text = weft.build(ws.schedule(f, cluster=2), target=SM90).source()
    assert "__cluster_dims__(2, 1, 1)" in text and ".multicast::cluster" in text
    # A signal orders what its thread has read, without waiting for all of its memory traffic.
    assert "mbarrier.arrive.shared::cluster" in text and ".release.cluster.shared" not in text
    form = dict(rows=64, columns=96, cluster=2, cluster_columns=4, blocks=8)
    built = weft.build(ws.schedule(ws.product(256, 384, 192), **form), target=SM90)
    text = built.source()
    assert "__cluster_dims__(8, 1, 1)" in text and not built.notes, built.notes
    # Parts of 16 rows of a for blocks 2 apart, halves of 64 terms of b for 2 neighbours.
    assert "row_blocks = weft_shift_left_i64(85, " in text
    assert "column_blocks = weft_shift_left_i64(3, " in text


def test_a_tile_that_lies_the_other_way_is_staged_turned():
    f = ws.product(464, 520, 192)
    s = ws.schedule(f, rows=80, columns=128, stages=6, blocks=4, cluster_columns=2)
    assert "T.tile_store_turned(" in s.script() and "T.tile_store(" not in s.script()
    assert "if block" not in s.script().split("tile_store_turned")[-1]  # nothing by threads
    if "NVRTC" in weft.device("cuda").reason:
        pytest.skip(f"no NVRTC: {weft.device('cuda').reason}")
    built = weft.build(s, target=SM90)
    assert "stmatrix.sync.aligned.m8n8.x4.trans" in built.source() and not built.notes, built.notes


def test_only_tokens_are_made_before_earlier_launches_end():
    if "NVRTC" in weft.device("cuda").reason:
        pytest.skip(f"no NVRTC: {weft.device('cuda').reason}")
    for cluster, barrier in ((1, "__syncthreads"), (2, "weft_cluster_meet")):
        text = weft.build(
            ws.schedule(ws.product(256, 256, 256), cluster=cluster), target=SM90
        ).source()
        assert f"{barrier}();\n  weft_wait_for_earlier();\n" in text
    # A program that reads an array before its first barrier, and one without barriers.
    tiles = weft._core._attention_tiles("forward", "bfloat16", 64, 64, lengths=True)
    A = weft.te.placeholder((1000,), name="A")
    B = weft.te.compute((1000,), lambda i: A[i] + 1.0, name="B")
    for f in (weft.script.from_source(tiles), weft.te.create_prim_func([A, B])):
        kernel = weft.build(f, target=SM90).source().split("__global__")[-1]
        body = kernel[kernel.index("{") :]
        before = body[: body.index("weft_wait_for_earlier();")]  # places of shared memory alone
        assert not re.search("Idx|if|for|lengths|A", before)


SCRIPTS = {
    "one": ws.schedule(
        ws.product(256, 512, 320), columns=128, stages=3, blocks=2, group_rows=2
    ).script(),
    "cluster": ws.schedule(
        ws.product(256, 64, 192), rows=64, columns=64, stages=2, blocks=2, cluster=2
    ).script(),
    "rows and columns": ws.schedule(
        ws.product(256, 256, 192),
        rows=64,
        columns=64,
        stages=2,
        blocks=4,
        cluster=2,
        cluster_columns=2,
    ).script(),
}
NOTHING = "T.evaluate(0)"
FULL = r"T.token_wait\(T.address_of\(full\[from_\]\), ring\[1\]\)"
EMPTY = r"T.token_wait\(T.address_of\(empty\[to\]\), ring\[1\]\)"
RELEASE = r"T.token_signal\(T.address_of\(empty\[ring\[2\]\]\)\)"

# name: part of the program, what is replaced, by what, which occurrence (0: all)
FAULTS = {
    "producer does not wait": ("p", EMPTY, NOTHING, 0),
    "consumer does not wait": ("c", FULL, NOTHING, 0),
    "producer waits for full": ("p", r"wait\(T.address_of\(empty", "wait(T.address_of(full", 0),
    "consumer waits for empty": ("c", r"wait\(T.address_of\(full", "wait(T.address_of(empty", 0),
    "consumer waits twice": (
        "c",
        f"( *)({FULL})",
        r"\1\2\n\1T.token_wait(T.address_of(full[from_]), 1 - ring[1])",
        0,
    ),
    "producer waits twice": (
        "p",
        f"( *)({EMPTY})",
        r"\1\2\n\1T.token_wait(T.address_of(empty[to]), 1 - ring[1])",
        0,
    ),
    "consumer waits late": ("c", rf"( *{FULL}\n)((?:.*\n){{2}})", r"\2\1", 0),
    "producer waits late": ("p", rf"( *{EMPTY}\n)((?:.*\n){{4}})", r"\2\1", 0),
    "two products in flight": ("c", r"T.wait\(multiplied, 1\)", "T.wait(multiplied, 2)", 0),
    "products are not waited for": ("c", r"T.wait\(multiplied, 1\)", NOTHING, 0),
    "last product in flight": ("c", r"T.wait\(multiplied, 0\)", "T.wait(multiplied, 1)", 0),
    "three stores in flight": ("c", r"T.wait\(sent, 1\)", "T.wait(sent, 2)", 0),
    "stores are not waited for": ("c", r"T.wait\(sent, 1\)", NOTHING, 0),
    "no barrier before staging": ("c", r"( *T.meet.*\n)( *T.tile_store)", r"\2", 0),
    "no barrier after staging": ("c", r"(T.bulk_fence\(\)\n) *T.meet.*\n", r"\1", 0),
    "no proxy fence": ("c", r"T.bulk_fence\(\)", NOTHING, 0),
    "fence before staging": ("c", r"( *T.tile_store.*\n)( *T.bulk_fence\(\)\n)", r"\2\1", 0),
    "fence after the store": ("c", r"( *T.bulk_fence\(\)\n)((?:.*\n){4})", r"\2\1", 0),
    "no release in the loop": ("c", RELEASE, NOTHING, 1),
    "no release at the end": ("c", RELEASE, NOTHING, 2),
    "released twice": ("c", f"( *)({RELEASE})", r"\1\2\n\1\2", 1),
    "released by every thread": ("c", "thread % 32 == 0", "thread % 1 == 0", 1),
    "released by one warp": ("c", "thread % 32 == 0", "thread % 128 == 0", 1),
    "released too early": ("c", RELEASE, "T.token_signal(T.address_of(empty[from_]))", 1),
    "full takes two signals": ("p", r"(init\(T.address_of\(full\[s\]\)), 1", r"\1, 2", 0),
    "empty takes fewer signals": ("p", r"(init\(T.address_of\(empty\[s\]\)), 8", r"\1, 7", 0),
    "empty takes more signals": ("p", r"(init\(T.address_of\(empty\[s\]\)), 8", r"\1, 9", 0),
    "a byte more": ("p", "32768", "32769", 0),
    "a byte less": ("p", "32768", "32767", 0),
    "bytes of one operand": ("p", "32768", "16384", 0),
    "bytes are not announced": ("p", r"expect\((.*), 32768\)", r"signal(\1)", 0),
    "bytes are announced twice": ("p", r"( *)(T.token_expect.*)", r"\1\2\n\1\2", 0),
    "producer begins with parity 0": ("p", r"ring\[1\] = 1\n", "ring[1] = 0\n", 0),
    "consumer begins with parity 1": ("c", r"ring\[1\] = 0\n", "ring[1] = 1\n", 0),
    "producer's parity stays": ("p", r"= 1 - ring\[1\]", "= ring[1]", 0),
    "consumer's parity stays": ("c", r"= 1 - ring\[1\]", "= ring[1]", 0),
    "producer turns early": ("p", r"ring\[0\] == 3", "ring[0] == 2", 0),
    "consumer turns early": ("c", r"ring\[0\] == 3", "ring[0] == 2", 0),
    "producer turns late": ("p", r"ring\[0\] == 3", "ring[0] == 4", 0),
    "a step is not copied": ("p", r"for step in range\(5\)", "for step in range(4)", 0),
    "a step too many": ("p", r"for step in range\(5\)", "for step in range(6)", 0),
    "a step is not multiplied": ("c", r"for step in range\(5\)", "for step in range(4)", 0),
    "a tile is not copied": ("p", r"for turn in range\(", "for turn in range(1, ", 0),
    "barrier of more threads": ("c", r"(T.meet\(.*), 128\)", r"\1, 160)", 0),
    "barrier of fewer threads": ("c", r"(T.meet\(.*), 128\)", r"\1, 96)", 0),
    "one barrier for both groups": ("c", r"T.meet\(group \+ 1", "T.meet(1", 0),
    "copies count at empty": ("p", r"full\[to\]\), (64|128), 64", r"empty[to]), \1, 64", 0),
    "copies to one slot": ("p", r"ring_b\[to, ", "ring_b[0, ", 0),
    "half of the columns": ("p", r"T.bulk_load\(T.address_of\(ring_b\[to, 64.*", NOTHING, 0),
    "columns copied twice": ("p", r"ring_b\[to, 64, 0\]", "ring_b[to, 0, 0]", 0),
    "slot before is multiplied": ("c", r"ring_b\[from_, 0, 0\]", "ring_b[ring[2], 0, 0]", 0),
    "no barrier after the start": ("p", r'T.sync\("shared"\)', NOTHING, 0),
    "other half is sent": ("c", r"(bulk_store.*staged\[group, )0", r"\g<1>1", 0),
    "other group's tile is sent": ("c", r"(bulk_store.*staged\[)group,", r"\g<1>1 - group,", 0),
    "both groups stage one tile": ("c", r"staged\[group,", "staged[0,", 0),
    "rows beyond the slot": ("c", r"group \* 64, 0\]", "group * 64 + 64, 0]", 0),
    "half of the tile staged twice": ("c", r"(tile_store.*staged\[group, )1", r"\g<1>0", 0),
}


CLUSTER_FAULTS = {
    "blocks do not meet first": ("p", r"T.cluster_meet\(2\)", NOTHING, 1),
    "only this block is told": ("c", r"_signal_in\((.*), thread % 32\)", r"_signal(\1)", 0),
    "one block is told twice": ("c", r", thread % 32\)", ", 0)", 0),
    "the other block is not waited for": ("p", r"empty\[s\]\), 8", "empty[s]), 4", 0),
    "the tile comes to this block alone": (
        "p",
        r"bulk_load_each\((.*), 3, (\d+, \d+\))",
        r"bulk_load(\1, \2",
        0,
    ),
    "a block that there is not receives": ("p", r", 3, (\d+, \d+\))", r", 7, \1", 0),
    "both bring the same half": ("p", r"place \* 32", "0", 0),
    "more blocks than there are": ("c", "thread % 32 < 2", "thread % 32 < 3", 1),
}


ROW_BLOCKS = r"row_blocks(, \d+, \d+\))"
COLUMN_BLOCKS = r"column_blocks(, \d+, \d+\))"
BOTH_FAULTS = {
    "a's part comes to the column": ("p", ROW_BLOCKS, r"column_blocks\1", 1),
    "b's part comes to the row": ("p", COLUMN_BLOCKS, r"row_blocks\1", 1),
    "a's part comes to all": ("p", ROW_BLOCKS, r"15\1", 1),
    "a's part comes to this block alone": (
        "p",
        r"row_blocks(, \d+, \d+\))",
        r"T.shift_left(1, place)\1",
        1,
    ),
    "the row is not told": ("c", "thread % 32 < 3", "thread % 32 < 2", 1),
    "the row is not told at the end": ("c", "thread % 32 < 3", "thread % 32 < 2", 2),
    "the row is not waited for": ("p", r"empty\[s\]\), 12", "empty[s]), 8", 0),
    "all blocks are told": ("c", "thread % 32 < 3", "thread % 32 < 4", 1),
    "bytes of one part": ("p", r"expect\((.*), 16384\)", r"expect(\1, 8192)", 0),
    "bytes of the whole and a part": ("p", r"expect\((.*), 16384\)", r"expect(\1, 20480)", 0),
    "all of a row bring the same half": ("p", r"place_column \* 32", "0", 0),
    "all of a column bring the same half": ("p", r"place_row \* 32", "0", 0),
    "blocks of half a cluster meet": ("p", r"T.cluster_meet\(4\)", NOTHING, 1),
}


def planted(part, old, new, which, script="one"):
    text = SCRIPTS[script]
    split = text.index('with T.block("consumer")')
    halves = {"p": text[:split], "c": text[split:]}
    seen = 0

    def change(match):
        nonlocal seen
        seen += 1
        return match.expand(new) if which in (0, seen) else match.group(0)

    halves[part] = re.sub(old, change, halves[part])
    assert seen >= max(which, 1), "the fault is not planted"
    return T.from_source(halves["p"] + halves["c"])


@pytest.mark.parametrize("script", SCRIPTS)
def test_the_program_without_a_fault_is_built(script):
    built = weft.build(T.from_source(SCRIPTS[script]), target="ref")
    assert not any("unchecked" in str(note) for note in built.notes), built.notes


@pytest.mark.parametrize("name", FAULTS)
def test_faults_are_found_when_the_program_is_built(name):
    refused(weft.Error, "verify.token", weft.build, planted(*FAULTS[name]), target="ref")


@pytest.mark.parametrize("name", CLUSTER_FAULTS)
def test_faults_of_clusters_are_found_when_the_program_is_built(name):
    fault = planted(*CLUSTER_FAULTS[name], "cluster")
    refused(weft.Error, "verify.token", weft.build, fault, target="ref")


@pytest.mark.parametrize("name", BOTH_FAULTS)
def test_faults_of_rows_and_columns_of_blocks_are_found(name):
    fault = planted(*BOTH_FAULTS[name], "rows and columns")
    refused(weft.Error, "verify.token", weft.build, fault, target="ref")


def test_clusters_of_one_size():
    text = SCRIPTS["cluster"]
    last = text.rindex("T.cluster_meet(2)")
    mixed = text[:last] + "T.cluster_meet(4)" + text[last + len("T.cluster_meet(2)") :]
    error = refused(weft.Error, "ir.cluster.size", weft.build, T.from_source(mixed), target="ref")
    assert "a cluster of 4 blocks beside one of 2" in str(error)
    ragged = re.sub(
        r"T.thread_binding\(2, thread=\"blockIdx.x\"\)",
        'T.thread_binding(3, thread="blockIdx.x")',
        text,
    )
    error = refused(weft.Error, "verify.token", weft.build, T.from_source(ragged), target="ref")
    assert "3 blocks along blockIdx.x, which is no multiple of its clusters of 2" in str(error)
