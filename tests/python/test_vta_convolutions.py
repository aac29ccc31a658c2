# SPDX-License-Identifier: Apache-2.0
"""Random convolutions under the default schedule and under tiles and threads of a user: any padding on each side, so
that tiles and whole rows of windows lie in it, strides, dilation, groups, both orders of axes; beside NumPy."""

import random

import numpy as np
import pytest

import weft
from weft import te

pytestmark = pytest.mark.targets("vta")
CONFIGS = ("sim", "4x8x8", "1x32x32")
NAMES = ("v_b", "v_o", "v_y", "v_x", "v_c", "v_p", "v_q")


class Convolution:
    def __init__(self, n, ci, co, groups, image, kernel, stride, pads, dilation, nhwc=False):
        (h, w), (kh, kw), (sy, sx), (dy, dx) = image, kernel, stride, dilation
        top, bottom, left, right = pads
        self.shape = (
            n,
            co,
            (h + top + bottom - (kh - 1) * dy - 1) // sy + 1,
            (w + left + right - (kw - 1) * dx - 1) // sx + 1,
        )
        given = (n, h, w, ci) if nhwc else (n, ci, h, w)
        X = te.placeholder(given, "int8", name="X")
        W = te.placeholder((co, ci // groups, kh, kw), "int8", name="W")
        c, p, q = (
            te.reduce_axis(e, name=a) for e, a in ((ci // groups, "c"), (kh, "p"), (kw, "q"))
        )

        def element(b, o, y, x):
            iy, ix = y * sy + p * dy - top, x * sx + q * dx - left
            channel = c if groups == 1 else o // (co // groups) * (ci // groups) + c
            read = X[b, iy, ix, channel] if nhwc else X[b, channel, iy, ix]
            inside = te.all(iy >= 0, iy < h, ix >= 0, ix < w)
            value = te.if_then_else(inside, read, te.const(0, "int8")).astype("int32")
            return te.sum(value * W[o, c, p, q].astype("int32"), axis=[c, p, q])

        self.func = te.create_prim_func([X, W, te.compute(self.shape, element, name="S")])
        rng = np.random.default_rng(co * h + w)
        self.x, self.k = (
            rng.integers(-128, 128, s).astype("int8") for s in (given, (co, ci // groups, kh, kw))
        )
        wide = (self.x.transpose(0, 3, 1, 2) if nhwc else self.x).astype("int32")
        wide = np.pad(wide, ((0, 0), (0, 0), (top, bottom), (left, right)))
        self.want, (oh, ow) = np.zeros(self.shape, "int32"), self.shape[2:]
        for a in range(kh):
            for b in range(kw):
                rows, columns = (
                    slice(a * dy, a * dy + (oh - 1) * sy + 1, sy),
                    slice(b * dx, b * dx + (ow - 1) * sx + 1, sx),
                )
                for g in range(groups):
                    outs, ins = (slice(g * e // groups, (g + 1) * e // groups) for e in (co, ci))
                    part = wide[:, ins, rows, columns]
                    self.want[:, outs] += np.einsum(
                        "nchw,oc->nohw", part, self.k[outs, :, a, b].astype("int32")
                    )

    def check(self, module, env, where):
        device = weft.device(env.target)
        out = weft.asarray(np.full(self.shape, 77, "int32"), device=device)
        module["main"](
            weft.asarray(self.x, device=device), weft.asarray(self.k, device=device), out
        )
        np.testing.assert_array_equal(out.numpy(), self.want, err_msg=where)


def drawn(seed):
    r = random.Random(seed)
    while True:
        groups, image = r.choice([1, 1, 1, 2, 3]), (r.randint(1, 14), r.randint(1, 14))
        kernel, dilation = (r.randint(1, 4), r.randint(1, 4)), (r.randint(1, 3), r.randint(1, 3))
        pads = [r.choice([0, 1, 2, 3, 5, 9]) for _ in range(4)]
        reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilation)]
        if reach[0] > image[0] + sum(pads[:2]) or reach[1] > image[1] + sum(pads[2:]):
            continue
        ci, co = groups * r.choice([1, 2, 3, 8, 16, 20]), groups * r.choice([1, 3, 8, 16, 24])
        stride = (r.randint(1, 3), r.randint(1, 3))
        return (r.choice([1, 1, 2, 4]), ci, co, groups, image, kernel, stride, pads, dilation, r.random() < 0.3)  # fmt: skip


@pytest.mark.parametrize("part", range(4))
def test_random_convolutions(part):
    right = scheduled = 0
    for seed in range(1000 + 15 * part, 1015 + 15 * part):
        sizes, r = drawn(seed), random.Random(seed)
        env, conv = weft.vta.env(r.choice(CONFIGS)), Convolution(*sizes)
        if weft.accepts(conv.func, env.target) is not None:
            with pytest.raises(weft.Error):
                weft.build(conv.func, target=env.target)
            continue
        where = f"seed {seed}: {env.target} {sizes}"
        conv.check(weft.build(conv.func, target=env.target), env, where)
        right += 1
        tiles = {r.choice(NAMES): r.randint(1, 5) for _ in range(2)}
        try:
            sch = weft.vta.default_schedule(conv.func, env, tiles=tiles, threads=r.choice([1, 2]))
            module = weft.build(sch, target=env.target)
        except weft.Error as error:
            assert error.code in ("vta.schedule.default", "vta.lower.capacity"), f"{where}: {error}"
            continue
        conv.check(module, env, f"{where} {tiles}")
        scheduled += 1
    assert right >= 14 and scheduled >= 4, (right, scheduled)


# What random convolutions found: constants that are copied, tiles, taps and all windows that lie wholly in the padding,
# threads whose tiles are unequal.
FOUND = [
    ("sim", (1, 8, 3, 1, (12, 1), (1, 2), (1, 3), (1, 3, 9, 0), (2, 2)), None, 1),
    ("1x32x32", (1, 6, 2, 2, (1, 11), (2, 1), (3, 2), (9, 0, 5, 2), (2, 1)), None, 1),
    ("sim", (1, 16, 3, 1, (12, 11), (4, 4), (2, 1), (1, 3, 9, 2), (1, 3), True), {"v_q": 1, "v_x": 1, "v_p": 1}, 1),
    ("1x32x32", (4, 3, 3, 1, (6, 9), (1, 1), (2, 1), (2, 2, 3, 3), (2, 3), True), {"v_p": 4, "v_b": 3}, 2),
    ("sim", (2, 1, 3, 1, (4, 11), (2, 4), (3, 2), (3, 2, 1, 9), (2, 3), True), {"v_x": 5}, 2),
    ("sim", (1, 3, 3, 1, (1, 1), (1, 1), (2, 2), (1, 0, 1, 0), (1, 1)), None, 1),
    ("4x8x8", (2, 3, 3, 1, (1, 1), (2, 1), (1, 1), (2, 2, 0, 0), (3, 1)), None, 1),
]  # fmt: skip


@pytest.mark.parametrize("config, sizes, tiles, threads", FOUND, ids=range(len(FOUND)))
def test_padding_and_threads(config, sizes, tiles, threads):
    env, conv = weft.vta.env(config), Convolution(*sizes)
    assert weft.accepts(conv.func, env.target) is None
    conv.check(weft.build(conv.func, target=env.target), env, "by default")
    sch = weft.vta.default_schedule(conv.func, env, tiles=tiles, threads=threads)
    conv.check(weft.build(sch, target=env.target), env, f"{tiles}, {threads} threads")


def test_tiles_that_name_an_iterator_which_groups_divide():
    conv = Convolution(1, 16, 16, 2, (6, 6), (3, 3), (1, 1), [1, 1, 1, 1], (1, 1))
    env = weft.vta.env()
    with pytest.raises(weft.Error) as caught:
        weft.vta.default_schedule(conv.func, env, tiles={"v_o": 3})
    assert caught.value.code == "vta.schedule.default"
    assert 'tiles name "v_o", which "main" reads as "v_o_o" and "v_o_i"' in str(caught.value)
    assert caught.value.help == 'name a part of it: tiles={"v_o_i": 3}'
    sch = weft.vta.default_schedule(conv.func, env, tiles={"v_o_i": 1})
    conv.check(weft.build(sch, target=env.target), env, "v_o_i")
