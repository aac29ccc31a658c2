# SPDX-License-Identifier: Apache-2.0
"""Copies of random regions, orders and widths: their data, and their cycles by the formula of docs/targets/wse.md."""

import math

import numpy as np
import pytest
from test_wse_programs import wse

LAYOUT = """
param W: u16; param H: u16;
const memcpy = @import_module("<memcpy/get_params>", .{ .width = W, .height = H });
layout {
  @set_rectangle(W, H);
  for (@range(u16, W)) |x| { for (@range(u16, H)) |y| {
    @set_tile_code(x, y, "pe.csl", .{ .memcpy_params = memcpy.get_params(x) });
  } }
  @export_name("words", [*]f32, true);
  @export_name("halves", [*]u16, true);
}"""
PE = """
param memcpy_params;
const sys = @import_module("<memcpy/memcpy>", memcpy_params);
var words = @zeros([600]f32); var halves = @zeros([600]u16);
var words_p: [*]f32 = &words; var halves_p: [*]u16 = &halves;
comptime { @export_symbol(words_p, "words"); @export_symbol(halves_p, "halves"); }
"""
LATENCY = 200


@pytest.mark.parametrize("channels", [1, 3, 4, 8, 16])
@pytest.mark.parametrize("arch,hop", [("wse2", 1), ("wse3", 2)])
def test_copies_take_what_their_channels_carry(arch, hop, channels, tmp_path):
    rng = np.random.default_rng(channels + 100 * hop)
    W, H = (int(v) for v in rng.integers(3, 20, 2))
    (tmp_path / "layout.csl").write_text(LAYOUT)
    (tmp_path / "pe.csl").write_text(PE)
    wse.compile_csl(
        str(tmp_path / "layout.csl"),
        str(tmp_path / "out"),
        arch=arch,
        params={"W": W, "H": H},
        memcpy=True,
        channels=channels,
        fabric_dims=(W + 7, H + 2),
        fabric_offsets=(4, 1),
    )
    runner = wse.SdkRuntime(str(tmp_path / "out"))
    runner.load()
    runner.run()
    band = math.ceil(H / min(channels, 8))
    orders = [wse.MemcpyOrder.ROW_MAJOR, wse.MemcpyOrder.COL_MAJOR]
    kinds = [wse.MemcpyDataType.MEMCPY_32BIT, wse.MemcpyDataType.MEMCPY_16BIT]
    for k in range(6):
        px, py = int(rng.integers(0, W)), int(rng.integers(0, H))
        w, h = int(rng.integers(1, W - px + 1)), int(rng.integers(1, H - py + 1))
        n = int(rng.integers(1, 500))
        data = rng.integers(0, 60000, w * h * n).astype(np.uint32)
        symbol = runner.get_id(["words", "halves"][k % 2])
        how = {
            "streaming": False,
            "order": orders[k // 2 % 2],
            "data_type": kinds[k % 2],
            "nonblock": False,
        }
        rows = max(np.bincount(np.arange(py, py + h) // band))
        want = LATENCY + (px + w + band) * hop + int(rows) * w * n
        before = runner.cycles()
        runner.memcpy_h2d(symbol, data, px, py, w, h, n, **how)
        between = runner.cycles()
        back = np.zeros_like(data)
        runner.memcpy_d2h(back, symbol, px, py, w, h, n, **how)
        assert (between - before, runner.cycles() - between) == (want, want)
        np.testing.assert_array_equal(back, data)
        # Row major: [h][w][n]; column major: [n][w][h].
        at = (
            (data.reshape(h, w, n)[-1, 0, -1])
            if k // 2 % 2 == 0
            else (data.reshape(n, w, h)[-1, 0, -1])
        )
        name, dtype = [("words", "uint32"), ("halves", "uint16")][k % 2]
        assert runner.read_symbol(4 + px, 1 + py + h - 1, name, dtype)[n - 1] == at
    runner.stop()
