# SPDX-License-Identifier: Apache-2.0
"""The order of ready tasks: in turn, so that a task that activates itself lets others run."""

import numpy as np
from csl_machine import SYS, Machine, both, layout


@both
def test_a_task_that_polls_lets_data_tasks_run(arch, tmp_path):
    """A local task that activates itself until a data task has run: whatever their ids, it ends."""
    pe = (
        SYS
        + """
param local: u16; param n: u16;
const iq = @get_input_queue(5); const oq = @get_output_queue(4); const c = @get_color(9);
const data_id = if (@is_arch("wse3")) @get_data_task_id(iq) else @get_data_task_id(c);
const poll_id = @get_local_task_id(local); const other_id = @get_local_task_id(30 - local);
var seen: u16 = 0; var polls: u16 = 0; var turns: u16 = 0; var sum = @zeros([1]u32); var sum_p: [*]u32 = &sum;
var words = @constants([n]u32, 3);
const to = @get_dsd(fabout_dsd, .{ .extent = n, .fabric_color = c, .output_queue = oq });
const from = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{n} -> words[i] });
task take(x: u32) void { sum[0] += x; seen += 1; }
task other() void { turns += 1; if (seen < n) @activate(other_id); }
task poll() void {
  polls += 1;
  if (seen < n) { @activate(poll_id); return; }
  sys.unblock_cmd_stream();
}
fn run() void { seen = 0; sum[0] = 0; @mov32(to, from, .{ .async = true }); @activate(poll_id); @activate(other_id); }
comptime {
  @bind_data_task(take, data_id); @bind_local_task(poll, poll_id); @bind_local_task(other, other_id);
  if (@is_arch("wse3")) { @initialize_queue(iq, .{ .color = c }); @initialize_queue(oq, .{ .color = c }); }
  @set_local_color_config(c, .{ .routes = .{ .rx = .{ RAMP }, .tx = .{ RAMP } } });
  @export_symbol(sum_p, "sum"); @export_symbol(run);
}
"""
    )
    exports = [("sum", "[*]u32", False), ("run", "fn()void")]
    text = layout(
        exports, params="param local: u16; param n: u16;", binding=".local = local, .n = n"
    )
    for local in (8, 11, 19, 22):
        files = {"layout.csl": text, "pe.csl": pe}
        m = Machine(tmp_path, arch, files, params={"local": local, "n": 12}, cycle_limit=100_000)
        m.launch("run")
        assert m.get("sum", 1, np.uint32).ravel().tolist() == [36]
        m.stop()
