# SPDX-License-Identifier: Apache-2.0
"""Attention by products of tiles, whose threads have roles: the reference interpreter runs the programs; results are
compared with the formula in float64."""

import re

import numpy as np
import pytest
import weft
from test_attention import formula, wide
from weft import _core

BATCH, HEADS, KEYS, SCALE = 2, 2, 1, 0.25
SEED, DROPPED = 12345678901234567890, 0.3


def rounded(x):
    bits = x.astype("float32").view(np.uint32)
    return (((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16) << 16).astype(np.uint32).view("float32")


def kept(n, m):
    """Philox 2x32-7 of (query, key) under the seed and the plane: factors of weights."""
    seed0, seed1 = np.uint32(SEED & 0xFFFFFFFF), np.uint32(SEED >> 32)
    plane = np.arange(BATCH * HEADS, dtype=np.uint32)[:, None, None]
    with np.errstate(over="ignore"):
        key = (seed0 + plane * np.uint32(2246822507)) ^ seed1
        p = np.broadcast_to(np.arange(n, dtype=np.uint32)[None, :, None], (BATCH * HEADS, n, m))
        q = np.broadcast_to(np.arange(m, dtype=np.uint32)[None, None], p.shape)
        for _ in range(7):
            wide_product = p.astype(np.uint64) * np.uint64(3528905107)
            p, q = (
                (wide_product >> np.uint64(32)).astype(np.uint32) ^ key ^ q,
                wide_product.astype(np.uint32),
            )
            key = key + np.uint32(2654435769)
    threshold = int(DROPPED * 2**32)
    return np.where(p >= threshold, 1 / (1 - DROPPED), 0).reshape(BATCH, HEADS, n, m)


def flat(x, dtype="float32"):
    return weft.asarray(np.ascontiguousarray(x).reshape(-1).astype("float32")).astype(dtype)


def on_card(text, *arguments):
    """Runs a program without roles by opencl, on copies of host arrays."""
    card, host = weft.device("opencl:0"), weft.device("cpu")
    moved = [x.to(card) if isinstance(x, weft.NDArray) else x for x in arguments]
    weft.build(_core.parse_func(text), target="opencl:0")(*moved)
    for x, y in zip(arguments, moved):
        if isinstance(x, weft.NDArray):
            x[...] = y.to(host)


def tiles(kind, n, m, width, value, change=None, dtype="bfloat16", **options):
    """The largest error of the results of a program beside the formula, as a part of their largest element."""
    rng = np.random.default_rng(5)
    shapes = ((HEADS, n, width), (KEYS, m, width), (KEYS, m, value), (HEADS, n, value))
    q, k, v, g = (rounded(rng.standard_normal((BATCH, *s))) for s in shapes)
    band, lengths, mask, padding, dropout = (
        options.pop(x, None) for x in ("band", "lengths", "mask", "padding", "dropout")
    )
    seen = dict(band=band, lengths=lengths, padding=padding, scale=SCALE)
    if mask is not None:
        seen["mask"] = np.broadcast_to(mask, (BATCH, HEADS, n, m))
    if dropout:
        seen["keep"] = kept(n, m)
    out, sums, dq, dk, dv = formula(q, k, v, g, **seen)
    facts = dict(
        band=band is not None,
        lengths=lengths is not None,
        padding=padding is not None,
        dropout=bool(dropout),
        **options,
    )
    if mask is not None:
        facts["mask"] = str(mask.dtype)
    text = _core._attention_tiles(kind, dtype, width, value, **facts)
    program = weft.build(_core.parse_func(change(text) if change else text), target="ref")

    rows = 64 * options.get("groups", 2)
    by_keys = kind in ("keys", "gradient")
    count, planes = -(-(m if by_keys else n) // rows), BATCH * (KEYS if by_keys else HEADS)
    # Blocks of the persistent program take several tiles.
    blocks = 3 if kind == "persistent" else count * planes
    numbers = [
        blocks,
        count,
        BATCH,
        HEADS,
        HEADS // KEYS,
        n,
        m,
        *([3] if kind == "persistent" else []),
    ]
    for length, h, w in ((n, HEADS, width), (m, KEYS, width), (m, KEYS, value), (n, HEADS, value)):
        numbers += [h * length * w, length * w, w]
    more = []
    if mask is not None:
        more.append(weft.asarray(np.ascontiguousarray(mask).reshape(-1)))
        steps = [int(np.prod(mask.shape[i + 1 :])) for i in range(4)]
        numbers += [0 if size == 1 else step for size, step in zip(mask.shape, steps)]
    if padding is not None:
        more.append(weft.asarray(padding.reshape(-1)))
    if lengths is not None:
        more.append(weft.asarray(lengths))
    if band:
        numbers += [max(band[0], -(n + m)), min(band[1], n + m)]
    numbers.append(SCALE)
    if dropout:
        numbers += [SEED & 0xFFFFFFFF, SEED >> 32, int(DROPPED * 2**32), 1 / (1 - DROPPED)]

    given = [flat(x, dtype) for x in (q, k, v, g)]
    want = {
        "forward": [out],
        "persistent": [out],
        "queries": [dq],
        "keys": [dk, dv],
        "gradient": [dk, dv],
    }[kind]
    want = {0: want, 1: want[:1], 2: want[1:]}[options.get("sums", 0)]
    results = [flat(np.full(x.shape, 7.0), dtype) for x in want]
    if kind in ("forward", "persistent"):
        logs = flat(np.zeros(sums.shape))
        program(*given[:3], *more, *results, logs, *numbers)
        # Queries that see nothing have -inf.
        (
            results.append(np.where(np.isneginf(wide(logs)), -99, wide(logs))),
            want.append(np.where(np.isneginf(sums), -99, sums)),
        )
        return largest(results, want)
    together, parts, pieces = (
        kind == "gradient",
        BATCH * HEADS * -(-n // 64),
        -(-max(width, value) // 64),
    )
    stats, added = flat(np.full(parts * 128, 9.0)), flat(np.full(parts * pieces * 4096, 9.0))
    prepare = _core._attention_tiles("stats", dtype, width, value, sums=0 if together else 1)
    on_card(prepare, given[3], flat(out, dtype), flat(sums), stats, *([added] if together else []),
            parts, HEADS, n, HEADS * n * value, n * value, value)  # fmt: skip
    if together:
        program(*given, *more, stats, added, *results, *numbers)
        results.append(flat(np.full(dq.shape, 7.0), dtype))
        on_card(
            _core._attention_tiles("dq", dtype, width, value),
            added,
            results[-1],
            parts * 2,
            n,
            SCALE,
        )
        want = [*want, dq]
    else:
        program(*given, *more, stats, *results, *numbers)
    return largest(results, want)


def largest(results, want):
    errors = [
        np.abs((r if isinstance(r, np.ndarray) else wide(r)).reshape(x.shape) - x).max()
        / max(np.abs(x).max(), 0.1)
        for r, x in zip(results, want)
    ]
    return np.max(errors)  # NaN where one is


RANDOM = np.random.default_rng(3)
LENGTHS = np.array([100, 31], "int32")
KINDS = ["forward", "persistent", "queries", "keys", "gradient"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "n, m, width, value, options",
    [
        (70, 200, 64, 64, {}),
        (130, 130, 72, 40, {"band": (-(10**9), 0)}),
        (5, 300, 64, 64, {"lengths": LENGTHS}),
        (150, 64, 8, 128, {"band": (-20, 5)}),
        (1, 1, 128, 128, {}),
        (70, 130, 96, 104, {"band": (-(10**9), 0)}),
    ],
)
def test_programs_of_tiles(kind, n, m, width, value, options):
    assert tiles(kind, n, m, width, value, **options) < 9e-3


def holes(*shape):
    """A mask in which one query sees nothing."""
    out = RANDOM.random(shape) < 0.7
    out[..., min(3, shape[-2] - 1), :] = False
    return out


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "width, options",
    [
        (64, {"mask": holes(1, 1, 70, 140)}),
        (64, {"mask": holes(BATCH, HEADS, 70, 140), "band": (-(10**9), 0), "lengths": LENGTHS}),
        (128, {"mask": RANDOM.standard_normal((1, HEADS, 70, 140)).astype("float32"), "padding": RANDOM.random((BATCH, 140)) < 0.7}),
        (64, {"mask": RANDOM.standard_normal((BATCH, 1, 1, 140)).astype("float32"), "dropout": True}),
        (128, {"dropout": True, "band": (-60, 3)}),
        (64, {"dropout": True, "padding": RANDOM.random((BATCH, 140)) < 0.5}),
    ],
)  # fmt: skip
def test_options_of_tiles(kind, width, options):
    assert tiles(kind, 70, 140, width, width, **options) < 9e-3


@pytest.mark.parametrize("options", [{"columns": 64}, {"groups": 3}, {"turns": False}, {"stages": 3}, {"groups": 4, "columns": 64}])  # fmt: skip
@pytest.mark.parametrize("kind", ["forward", "persistent"])
def test_forms_of_tiles(kind, options):
    width = 64 if "groups" in options else 128
    assert tiles(kind, 200, 300, width, width, band=(-(10**9), 0), **options) < 8e-3


@pytest.mark.parametrize("width", [64, 128])
def test_dq_added_in_bulk(width):
    assert tiles("gradient", 200, 300, width, width, band=(-(10**9), 0), bulk=True) < 9e-3


@pytest.mark.parametrize("kind", ["forward", "gradient"])
def test_tiles_of_float16(kind):
    assert tiles(kind, 70, 130, 64, 64, dtype="float16", band=(-(10**9), 0)) < 2e-3


@pytest.mark.parametrize("sums", [1, 2])
def test_one_gradient_of_wide_keys(sums):
    assert tiles("keys", 70, 130, 136, 200, stages=1, sums=sums) < 8e-3
    assert tiles("queries", 70, 130, 136, 200, stages=1) < 8e-3


def _without(text, line):
    lines = text.splitlines()
    lines[line] = re.sub(r"\S.*", "T.evaluate(0)", lines[line])
    return "\n".join(lines) + "\n"


def unnoticed(kind, sizes, width, band=None, **form):
    """The waits and signals of a program without which its results are still right."""
    text = _core._attention_tiles(
        kind, "bfloat16", width, width, band=bool(band), turns=False, **form
    )
    # The end of a block waits for its last stores as well.
    calls = re.compile(r"\s*T\.(token_wait|token_signal|token_expect|wait|meet)\((?!sent)")
    lines = text.splitlines()
    # Ordinary stores to shared memory, which this orders, are not judged (docs/design/roles.md).
    ordinary = [i + 2 for i, line in enumerate(lines) if "ADD[" in line and "bulk" not in line]
    places = [i for i, line in enumerate(lines) if calls.match(line) and i not in ordinary]
    assert len(places) > 8
    out = set()
    for i in places:
        try:
            wrong = not tiles(kind, *sizes, width, width, band=band, turns=False, change=lambda t, i=i: _without(t, i), **form) < 9e-3  # fmt: skip
        except weft.Error:
            wrong = True
        if not wrong:
            out.add(lines[i].strip())
    return out


# Every second copy is done at once: of two pieces one is late.
@pytest.mark.parametrize(
    "kind, width, form",
    [("forward", 128, {}), ("queries", 64, {}), ("keys", 64, {}), ("gradient", 128, {}), ("gradient", 128, {"bulk": True})],
)  # fmt: skip
def test_every_wait_and_signal_is_needed(kind, width, form):
    assert unnoticed(kind, (70, 500), width, **form) == set()


def test_every_wait_and_signal_is_needed_by_persistent_blocks():
    """Blocks with several tiles; in the second form groups skip steps at both ends."""
    first = unnoticed("persistent", (520, 400), 128, band=(-150, 0))
    skips = unnoticed("persistent", (600, 600), 64, band=(-150, 0), columns=64, groups=4)
    assert first & skips == set()


def test_columns_between_eights_are_refused():
    text = _core._attention_tiles("forward", "bfloat16", 128, 128).replace(
        ", 128, 0, 1, 1)", ", 84, 0, 1, 1)"
    )
    with pytest.raises(weft.Error, match="84 columns") as e:
        weft.build(_core.parse_func(text), target="cuda:arch=sm_90")
    assert e.value.code == "cuda.instruction.form"


def test_tiles_become_kernels():
    """For a card that is not here: the compiler takes every form."""
    forms = [
        {},
        {"band": True},
        {"mask": "bool", "padding": True},
        {"mask": "bfloat16", "dropout": True},
    ]
    for kind in KINDS:
        for width in (64, 128):
            for form in forms:
                text = _core._attention_tiles(kind, "bfloat16", width, width, **form)
                source = weft.build(_core.parse_func(text), target="cuda:arch=sm_90").source
                assert "wgmma" in (source() if callable(source) else source)
