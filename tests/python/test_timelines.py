# SPDX-License-Identifier: Apache-2.0
"""Every unit of the simulated machines has a track in the trace, and the wafer's load over time is a page; neither
changes what is computed, or when."""

import json
import pathlib
import re
import sys

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "compat" / "cerebras"))
weft = pytest.importorskip("weft")
from weft import te, wse  # noqa: E402

COPY = dict(
    streaming=False,
    order=wse.MemcpyOrder.ROW_MAJOR,
    data_type=wse.MemcpyDataType.MEMCPY_32BIT,
    nonblock=False,
)


def tracks(events):
    """{(process, thread): spans}"""
    names, counts = {}, {}
    for e in events:
        if e["ph"] == "M" and e["name"] == "process_name":
            names[e["pid"]] = e["args"]["name"]
        if e["ph"] == "M" and e["name"] == "thread_name":
            names[e["pid"], e["tid"]] = e["args"]["name"]
    for e in events:
        if e["ph"] == "X":
            key = names[e["pid"]], names[e["pid"], e["tid"]]
            counts[key] = counts.get(key, 0) + 1
            assert e["dur"] >= 0 and e["ts"] >= 0
    return counts


def product(device, dtype, sums):
    A, B = te.placeholder((20, 40), dtype, name="A"), te.placeholder((24, 40), dtype, name="B")
    k = te.reduce_axis((0, 40), name="k")
    C = te.compute(
        (20, 24), lambda i, j: te.sum(A[i, k].astype(sums) * B[j, k].astype(sums), axis=k), name="C"
    )
    module = weft.build(te.create_prim_func([A, B, C]), target=device)

    def arguments(
        value,
    ):  # the wafer does not send what it has been sent: other numbers in each run
        operands = [
            weft.array(np.full(s, value, dtype), device=device) for s in ((20, 40), (24, 40))
        ]
        return [*operands, weft.zeros((20, 24), dtype=sums, device=device)]

    d = weft.device(device)
    held = arguments(3)
    module(*held)
    held[-1].numpy()  # results may stay on the device until they are asked for
    held = arguments(2)
    d.clear_stats()
    module(*held)
    held[-1].numpy()
    plain = d.stats()
    held = arguments(1)
    d.clear_stats()
    recording = weft._core.DeviceTrace(d)
    module(*held)
    result = held[-1].numpy()
    events = json.loads(recording.json())["traceEvents"]
    traced = d.stats()
    np.testing.assert_array_equal(result, np.full((20, 24), 40))
    return tracks(events), plain, traced


@pytest.mark.targets("qpu")
def test_qpu_units_have_tracks():
    found, plain, traced = product("qpu", "float32", "float32")
    assert plain == traced
    units = {thread for _, thread in found if re.fullmatch(r"qpu \d+", thread)}
    assert units == {f"qpu {i}" for i in range(len(units))} and 1 < len(units) <= 12
    assert all(found["qpu", thread] >= 1 for thread in units)
    requests = sum(n for (_, thread), n in found.items() if re.fullmatch(r"tmu \d", thread))
    assert requests == traced["tmu.requests"] > 0
    assert found["qpu", "dma store"] == traced["dma.stores"] > 0


@pytest.mark.targets("vta")
def test_vta_units_have_tracks():
    found, plain, traced = product("vta", "int8", "int32")
    assert plain == traced
    assert {thread for _, thread in found} == {"fetch", "load", "compute", "store"}
    assert found["vta", "fetch"] == traced["instructions"]


@pytest.mark.targets("wse")
def test_wafer_units_have_tracks():
    found, plain, traced = product("wse:3x2", "float32", "float32")
    assert plain == traced
    for x in range(3):
        for y in range(2):
            assert found[f"pe {x},{y}", "main"] >= 1
    assert found["host", "launches"] >= 1
    assert found["host", "copies to the wafer"] >= 2
    assert found["host", "copies from the wafer"] >= 1


@pytest.fixture(scope="module")
def gemv(tmp_path_factory):
    out = str(tmp_path_factory.mktemp("gemv") / "out")
    wse.compile_csl(
        str(ROOT / "examples/wse/gemv/layout.csl"),
        out,
        fabric_dims=(15, 3),
        fabric_offsets=(4, 1),
        params={"width": 8, "rows": 64, "cols": 16},
        memcpy=True,
    )
    return out


def run_gemv(out, **options):
    runner = wse.SdkRuntime(out, **options)
    runner.load()
    runner.run()
    A = np.arange(8 * 64 * 16, dtype=np.float32)
    runner.memcpy_h2d(runner.get_id("A"), A, 0, 0, 8, 1, 64 * 16, **COPY)
    runner.memcpy_h2d(runner.get_id("x"), np.ones(8 * 16, np.float32), 0, 0, 8, 1, 16, **COPY)
    runner.launch("multiply", nonblock=False)
    y = np.zeros(64, np.float32)
    runner.memcpy_d2h(y, runner.get_id("y"), 0, 0, 1, 1, 64, **COPY)
    runner.stop()
    return runner, y


def levels(text, rows):
    return np.frombuffer(bytes.fromhex(text), np.uint8).reshape(rows, -1)


def test_the_page_shows_the_load_over_time(gemv, tmp_path):
    plain, expected = run_gemv(gemv)
    runner, y = run_gemv(gemv, timeline=True)
    np.testing.assert_array_equal(y, expected)
    assert runner.stats() == plain.stats() and runner.cycles() == plain.cycles()
    runner.save_timeline(tmp_path / "time.html")
    page = (tmp_path / "time.html").read_text()
    data = json.loads(re.search(r"^const data = (.*);$", page, re.M).group(1))
    cycles = data["cycles"]
    assert cycles[0] == 0 and cycles[-1] == runner.cycles() and cycles == sorted(cycles)
    assert 8 < len(cycles) <= 193 and (data["columns"], data["rows"], data["step"]) == (8, 1, 1)
    length = np.diff(cycles)[:, None]
    stats = plain.stats()
    for what, total in (("busy", stats["busy.pe"]), ("sent", stats["wavelets.west"])):
        level = levels(data[what], len(cycles) - 1)
        assert level.shape == (len(cycles) - 1, 8)
        assert abs((level / 255 * length).sum() - total) <= 0.01 * total + length.sum() * 8 / 255
        assert level.max() > 0
    # The last PE sends, the first one only receives.
    sent = levels(data["sent"], len(cycles) - 1)
    assert sent[:, 0].max() == 0 and sent[:, 7].max() > 0


def test_cells_of_large_rectangles_are_blocks_of_pes(tmp_path):
    (tmp_path / "layout.csl").write_text(
        "layout { @set_rectangle(130, 2);\n"
        '  for (@range(u16, 130)) |x| { for (@range(u16, 2)) |y| { @set_tile_code(x, y, "pe.csl"); } } }'
    )
    (tmp_path / "pe.csl").write_text(
        """
var n: u32 = 0;
task main() void { for (@range(u16, 900)) |i| { n += 1; } }
comptime { @bind_local_task(main, @get_local_task_id(9)); @activate(@get_local_task_id(9)); }
"""
    )
    out = str(tmp_path / "out")
    wse.compile_csl(str(tmp_path / "layout.csl"), out, fabric_dims=(137, 4), fabric_offsets=(4, 1))
    runner = wse.SdkRuntime(out, memcpy_required=False, timeline=True)
    runner.load()
    runner.run()
    runner.stop()
    data = runner._call("timeline")
    assert (data["columns"], data["rows"], data["step"]) == (65, 1, 2)
    assert levels(data["busy"], len(data["cycles"]) - 1).max(axis=1)[0] > 128


def test_a_page_that_was_not_asked_for_is_refused(gemv, tmp_path):
    runner, _ = run_gemv(gemv)
    with pytest.raises(wse.WseError, match="timeline=True") as caught:
        runner.save_timeline(tmp_path / "time.html")
    assert caught.value.code == "wse.api.timeline"
    assert "nothing was kept over the" in str(caught.value)
    assert not (tmp_path / "time.html").exists()
