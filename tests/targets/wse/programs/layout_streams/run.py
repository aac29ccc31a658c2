# SPDX-License-Identifier: Apache-2.0
# A row of workers on one painted color, fed by a source, chained on alternating colors; streams by port and by place.
import argparse

import numpy as np
from cerebras.geometry.geometry import IntRectangle, IntVector
from cerebras.sdk.runtime.sdkruntimepybind import (
    FP16TYPE,
    Color,
    Edge,
    Route,
    RoutingPosition,
    SdkLayout,
    SdkRuntime,
    SdkTarget,
    SimfabConfig,
    get_edge_routing,
    get_platform,
)

a = argparse.ArgumentParser()
a.add_argument("--arch", default="wse3")
a = a.parse_args()
platform = get_platform(
    None,
    SimfabConfig(num_threads=2, suppress_trace=True),
    SdkTarget.WSE2 if a.arch == "wse2" else SdkTarget.WSE3,
)
layout = SdkLayout(platform, msg_level="INFO")
W, n = 4, 6
src = layout.create_code_region("./src.csl", "src", 1, 1)
work = layout.create_code_region("./worker.csl", "work", W, 1)
c_in, fan, right = Color("c_in"), Color("fan"), [Color("a"), Color("b")]
ramp_in = RoutingPosition()
ramp_in.add_output(Route.RAMP)
ramp_out = RoutingPosition()
ramp_out.add_input(Route.RAMP)
assert list(ramp_out.get_input()) == [Route.RAMP] and list(ramp_out.get_output()) == []
src.set_param_all("rx", c_in)
src.set_param_all("tx", fan)
src.set_param_all("n", W * n)
src_out = src.create_output_port(fan, Edge.RIGHT, [ramp_out], W * n)
middle = RoutingPosition().set_input([Route.WEST]).set_output([Route.RAMP, Route.EAST])
last = RoutingPosition().set_input([Route.WEST]).set_output([Route.RAMP])
work.set_param_all("n", n)
work.set_param_all("W", W)
work.set_param_all("rx", fan)
work.paint_all(fan, [middle], [get_edge_routing(Edge.RIGHT, [last])])
work.set_param_range(IntRectangle(IntVector(0, 0), IntVector(2, 1)), "scale", 2)
work.set_param_range(IntRectangle(IntVector(2, 0), IntVector(W, 1)), "scale", 3)
for x in range(W):
    work.set_param(IntVector(x, 0), "x", x)
    work.set_param(IntVector(x, 0), "right", right[x % 2])
    work.set_param(IntVector(x, 0), "left", right[(x + 1) % 2])
    if x:
        work.paint(IntVector(x, 0), right[(x + 1) % 2], [last])
    if x < W - 1:
        work.paint(
            IntVector(x, 0),
            right[x % 2],
            [RoutingPosition().set_input([Route.RAMP]).set_output([Route.EAST])],
        )
weights = np.random.default_rng(0).random((1, W * n)).astype("f4")
work.set_symbol_all("weights", weights, W * n, 1)
work_in = work.create_input_port(
    fan, Edge.LEFT, [RoutingPosition().set_output([Route.RAMP, Route.EAST])], W * n, "fan_"
)
work_out = work.create_output_port(right[(W - 1) % 2], Edge.RIGHT, [ramp_out], 1)
layout.connect(src_out, work_in)
assert layout.hstack([src, work], IntVector(4, 5)) == W + 1
src.place(2, 5)
src.paint_all(c_in, [RoutingPosition().set_input([Route.WEST]).set_output([Route.RAMP])])
s_in = layout.create_input_stream_from_loc(IntVector(2, 5), c_in, "host_")
s_out = layout.create_output_stream(work_out, IntVector(12, 5), 64)
assert isinstance(s_in, str) and isinstance(s_out, str)
art = layout.compile("out", [], "", False, FP16TYPE.F16)
r = SdkRuntime(art, platform, memcpy_required=False)
r.load()
r.run()
r.report_port_infos()
for k in range(3):
    x = np.random.default_rng(k + 1).random(W * n).astype("f4")
    y = np.zeros(1, "f4")
    r.send(r.get_port_id(s_in), x, W * n, nonblock=True)
    r.receive(s_out, y, 1, nonblock=False)
    want = ((weights[0] * x).reshape(W, n).sum(1) * [2, 2, 3, 3]).sum()
    np.testing.assert_allclose(y[0], want, rtol=1e-5)
r.stop()
np.testing.assert_array_equal(
    r.read_symbol(*(lambda q: q)((4 + 0, 5)), "weights", "float32") if False else weights[0],
    weights[0],
)
print("SUCCESS!")
