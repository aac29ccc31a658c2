# SPDX-License-Identifier: Apache-2.0
"""Random routers: a PE at the west end sends data and control wavelets along a row whose PEs have random switch positions,
modes of popping and range filters. The reference follows each wavelet from router to router: it is routed at the position in
force, then its first command moves the switch, then the command is popped or stays."""

import random

from csl_machine import SYS, layout

CONTROL = 0xFFFFFFFF  # in what a PE got: a control task ran
OPCODES = ["NOP", "SWITCH_ADV", "SWITCH_RST"]

PE = """
param first: bool;
const ctl = @import_module("<control>");
const c = @get_color(4); const iq = @get_input_queue(2); const oq = @get_output_queue(3);
const ended = @get_control_task_id(40);
const take_id = if (@is_arch("wse3")) @get_data_task_id(iq) else @get_data_task_id(c);
var got = @zeros([64]u32); var got_p: [*]u32 = &got; var count = @zeros([1]u32); var count_p: [*]u32 = &count;
const out = @get_dsd(fabout_dsd, .{ .extent = 1, .fabric_color = c, .output_queue = oq });
const out_control = @get_dsd(fabout_dsd, .{ .extent = 1, .fabric_color = c, .output_queue = oq, .control = true });
fn put(x: u32) void { got[count[0]] = x; count[0] += 1; }
task take(x: u32) void { put(x); }
task control() void { put(0xffffffff); }
fn go() void { if (first) { %s } sys.unblock_cmd_stream(); }
comptime {
  if (first) { if (@is_arch("wse3")) @initialize_queue(oq, .{ .color = c }); }
  else {
    @bind_data_task(take, take_id); @bind_control_task(control, ended);
    if (@is_arch("wse3")) @initialize_queue(iq, .{ .color = c });
  }
  @export_symbol(got_p, "got"); @export_symbol(count_p, "count"); @export_symbol(go);
}
"""


def _router(rng, x, width):
    ways = [["EAST"], ["RAMP"], ["RAMP", "EAST"]]
    if x == 0:
        ways = [["EAST"]]
    elif x == width - 1:
        ways = [["RAMP"]]
    positions = [rng.choice(ways) for _ in range(rng.randint(1, 4))]
    return {
        "positions": positions,
        "ring": rng.random() < 0.5,
        "pop": rng.choice(["no_pop", "always_pop", "pop_on_advance"]),
        "current": rng.randrange(len(positions)),
        "filter": (rng.randint(0, 5), rng.randint(6, 15)) if x and rng.random() < 0.3 else None,
    }


def _config(x, r):
    """The router's @set_color_config."""
    text = f".routes = .{{ .rx = .{{ {'WEST' if x else 'RAMP'} }}, .tx = .{{ {', '.join(r['positions'][0])} }} }}"
    if len(r["positions"]) > 1:
        later = enumerate(r["positions"][1:], 1)
        places = [f".pos{k} = .{{ .tx = .{{ {', '.join(p)} }} }}" for k, p in later]
        text += (
            f", .switches = .{{ {', '.join(places)}, .current_switch_pos = {r['current']}, "
            f".ring_mode = {str(r['ring']).lower()}, .pop_mode = .{{ .{r['pop']} = true }} }}"
        )
    if r["filter"]:
        low, high = r["filter"]
        text += (
            f", .filter = .{{ .kind = .{{ .range = true }}, .min_idx = {low}, .max_idx = {high} }}"
        )
    return f"if (x == {x}) @set_color_config(x, y, @get_color(4), .{{ {text} }});\n"


def _wavelet(rng):
    """(data, None) or (None, eight commands with whether the CE ignores them), and the statement that sends it."""
    if rng.random() >= 0.35:
        data = rng.randint(0, 15) << 16 | rng.randint(0, 0xFFFF)
        return data, None, f"@mov32(out, {data});"
    n = rng.randint(1, 8)
    given = [(rng.choice(OPCODES), rng.random() < 0.5) for _ in range(n)]
    rest = rng.random() < 0.5
    codes = ", ".join(f"ctl.opcode.{c}" for c, _ in given)
    ignored = ", ".join(str(i).lower() for _, i in given)
    send = (
        f"@mov32(out_control, ctl.encode_payload({n}, [{n}]ctl.opcode{{ {codes} }}, [{n}]bool{{ {ignored} }}, "
        f"{str(rest).lower()}, ended));"
    )
    return None, given + [("NOP", rest)] * (8 - n), send


def _follow(routers, wavelets):
    got = [[] for _ in routers]
    at = [r["current"] for r in routers]
    for data, commands in wavelets:
        for x, r in enumerate(routers):
            tx, (low, high) = r["positions"][at[x]], r["filter"] or (0, 0xFFFF)
            if "RAMP" in tx and commands is None and low <= data >> 16 <= high:
                got[x].append(data)
            if "RAMP" in tx and commands is not None and not commands[0][1]:
                got[x].append(CONTROL)
            if commands is not None and len(r["positions"]) > 1:
                moved, last = False, len(r["positions"]) - 1
                if commands[0][0] == "SWITCH_ADV" and (at[x] < last or r["ring"]):
                    at[x], moved = (at[x] + 1 if at[x] < last else 0), True
                elif commands[0][0] == "SWITCH_RST":
                    at[x] = 0
                if r["pop"] == "always_pop" or (r["pop"] == "pop_on_advance" and moved):
                    commands = commands[1:] + [("NOP", False)]
            if "EAST" not in tx:
                break
    return got


def program(seed):
    """(files, width, what each PE gets)"""
    rng = random.Random(seed)
    width = rng.randint(2, 6)
    routers = [_router(rng, x, width) for x in range(width)]
    sent = [_wavelet(rng) for _ in range(rng.randint(8, 40))]
    exports = [("got", "[*]u32", False), ("count", "[*]u32", False), ("go", "fn()void")]
    config = "".join(_config(x, r) for x, r in enumerate(routers))
    files = {
        "layout.csl": layout(exports, config=config, binding=".first = (x == 0)"),
        "pe.csl": SYS + PE % "\n".join(send for _, _, send in sent),
    }
    return files, width, _follow(routers, [(data, commands) for data, commands, _ in sent])
