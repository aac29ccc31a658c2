# SPDX-License-Identifier: Apache-2.0
"""What operations do that find a FIFO empty or full: .empty_action and .full_action of SDK 2.10."""

import numpy as np
import pytest
from csl_machine import ARCHS, both
from test_wse_programs import LAYOUT, START, wse

PE = """
var buffer = @zeros([%d]u32); const fifo = @allocate_fifo(buffer%s);
const c = @get_color(3); const iq = @get_input_queue(3); const oq = @get_output_queue(4);
var v = [8]u32{ 11, 12, 13, 14, 15, 16, 17, 18 }; var w = @zeros([8]u32);
export var ok: u16 = 7; export var later: u16 = 0; export var got = @zeros([8]u32);
fn read(n: u16) mem1d_dsd { return @get_dsd(mem1d_dsd, .{ .base_address = &v, .extent = n }); }
fn into(n: u16) mem1d_dsd { return @get_dsd(mem1d_dsd, .{ .base_address = &got, .extent = n }); }
const out5 = @get_dsd(fabout_dsd, .{ .extent = 5, .fabric_color = c, .output_queue = oq });
const in3 = @get_dsd(fabin_dsd, .{ .extent = 3, .fabric_color = c, .input_queue = iq });
task more() void { later += 1; %s }
comptime {
  @bind_local_task(more, @get_local_task_id(9));
  @set_local_color_config(c, .{ .routes = .{ .rx = .{ RAMP }, .tx = .{ RAMP } } });
  @initialize_queue(iq, .{ .color = c }); if (@is_arch("wse3")) @initialize_queue(oq, .{ .color = c });
}
"""


def run(folder, arch, body, settings="", more="", length=8):
    (folder / "layout.csl").write_text(LAYOUT)
    (folder / "pe.csl").write_text(PE % (length, settings, more) + START % body)
    wse.compile_csl(str(folder / "layout.csl"), str(folder / "out"), arch=arch)
    runner = wse.SdkRuntime(str(folder / "out"), memcpy_required=False)
    runner.load()
    runner.run()
    runner.stop()
    return (
        int(runner.read_symbol(0, 0, "ok", "uint16")[0]),
        int(runner.read_symbol(0, 0, "later", "uint16")[0]),
        list(runner.read_symbol(0, 0, "got", "uint32")),
    )


def empty(action):
    return ", .{ .empty_action = .{ .%s = true } }" % action


def full(action):
    return ", .{ .full_action = .{ .%s = true } }" % action


PUSH3 = "@mov32(fifo, read(3)); "


@both
@pytest.mark.parametrize(
    "settings,ok", [("", 0), (empty("test_or_suspend"), 0), (empty("terminate"), 1)]
)
def test_synchronous_operations_end_at_an_empty_fifo(settings, ok, arch, tmp_path):
    body = PUSH3 + "ok = if (@mov32(into(5), fifo)) @as(u16, 1) else 0;"
    assert run(tmp_path, arch, body, settings) == (ok, 0, [11, 12, 13, 0, 0, 0, 0, 0])


@both
@pytest.mark.parametrize("settings,ok", [("", 0), (empty("terminate"), 1)])
def test_synchronous_operations_with_the_fabric_do_too(settings, ok, arch, tmp_path):
    body = (
        PUSH3 + "ok = if (@mov32(out5, fifo)) @as(u16, 1) else 0; @mov32(into(3), in3); later += 5;"
    )
    assert run(tmp_path, arch, body, settings) == (ok, 5, [11, 12, 13, 0, 0, 0, 0, 0])


@both
@pytest.mark.parametrize("settings,sent", [("", 5), (empty("terminate"), 3)])
def test_asynchronous_operations_wait_or_end(settings, sent, arch, tmp_path):
    """The operation has ended before the second push, or takes its elements."""
    body = (
        PUSH3
        + "@mov32(out5, fifo, .{ .async = true, .activate = more }); @mov32(into(3), in3); "
        + "@mov32(fifo, read(2)); var k: u16 = 0; while (k < 99) : (k += 1) {} ok = later;"
    )
    rest = "@mov32(@increment_dsd_offset(into(2), 3, u32), fifo);"
    ok, later, got = run(tmp_path, arch, body, settings, rest)
    assert (ok, later) == (0, 1)  # the task runs after the one that started the operation
    assert got[:5] == [11, 12, 13] + ([0, 0] if sent == 5 else [11, 12])


@pytest.mark.parametrize("settings,ok", [("", 0), (full("terminate"), 1)])
def test_operations_that_find_a_fifo_full(settings, ok, tmp_path):
    body = "ok = if (@mov32(fifo, read(6))) @as(u16, 1) else 0; @mov32(into(4), fifo);"
    assert run(tmp_path, "wse3", body, settings, length=4) == (ok, 0, [11, 12, 13, 14, 0, 0, 0, 0])


def test_a_synchronous_operation_waits_for_a_push(tmp_path):
    body = (
        "@mov32(fifo, in3, .{ .async = true, .activate = more });"
        "@mov32(@set_dsd_length(out5, 3), read(3), .{ .async = true });"
        "ok = if (@mov32(into(3), fifo)) @as(u16, 1) else 0;"
    )
    assert run(tmp_path, "wse3", body, empty("suspend")) == (1, 1, [11, 12, 13, 0, 0, 0, 0, 0])


def test_a_synchronous_operation_waits_for_a_pop(tmp_path):
    body = (
        "@mov32(@set_dsd_length(out5, 5), fifo, .{ .async = true, .activate = more });"
        "@mov32(@get_dsd(mem1d_dsd, .{ .base_address = &got, .extent = 3 }), in3, .{ .async = true });"
        "ok = if (@mov32(fifo, read(5))) @as(u16, 1) else 0;"
    )
    ok, later, got = run(tmp_path, "wse3", body, full("suspend"), length=2)
    assert (ok, got[:3]) == (1, [11, 12, 13])


@pytest.mark.parametrize(
    "body,settings,code",
    [
        ("@mov32(into(1), fifo);", empty("fault"), "wse.fifo.empty"),
        ("@mov32(fifo, read(5));", full("fault"), "wse.fifo.full"),
        ("@mov32(out5, fifo, .{ .async = true });", empty("fault"), "wse.fifo.empty"),
    ],
)
def test_faults(body, settings, code, tmp_path):
    with pytest.raises(wse.WseError) as caught:
        run(tmp_path, "wse3", body, settings, length=4)
    assert caught.value.code == code
    assert "_action is a fault" in str(caught.value)
    assert "async" in body or "pe.csl:" in str(caught.value)


@pytest.mark.parametrize(
    "arch,settings,words",
    [
        ("wse2", empty("suspend"), "and terminate on WSE-2"),
        ("wse2", empty("fault"), "and terminate on WSE-2"),
        ("wse2", full("terminate"), "the default, on WSE-2"),
        ("wse2", empty("stop"), "legal are .{ .test_or_suspend = true }"),
        ("wse3", full("stop"), "terminate, suspend and fault"),
    ],
)
def test_refusals(arch, settings, words, tmp_path):
    with pytest.raises(wse.WseError) as caught:
        run(tmp_path, arch, PUSH3, settings)
    assert caught.value.code == "wse.csl.fifo.action"
    assert words in str(caught.value)


@pytest.mark.parametrize("arch", ARCHS)
def test_random_pushes_and_pops(arch, tmp_path):
    """Counts of elements moved, beside a model of the queue."""
    rng = np.random.default_rng(4)
    length, body, held, want = 5, "", 0, []
    for _ in range(24):
        n = int(rng.integers(1, 7))
        if rng.random() < 0.5:
            moved = min(n, length - held)
            held += moved
            body += f"r = @mov32(fifo, read({n})); "
        else:
            moved = min(n, held)
            held -= moved
            body += f"r = @mov32(into({n}), fifo); "
        want.append(moved == n)
        body += "ok = ok * 2 + @as(u16, r); " if len(want) % 12 else "ok = ok * 2 + @as(u16, r); got[%d] = @as(u32, ok); ok = 0; " % (5 + len(want) // 12)  # fmt: skip
    _, _, got = run(tmp_path, arch, "var r = true; ok = 0; " + body, length=length)
    bits = [int("".join("01"[b] for b in want[k : k + 12]), 2) for k in (0, 12)]
    assert got[6:8] == bits
