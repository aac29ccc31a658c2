# SPDX-License-Identifier: Apache-2.0
# A 2 x 1 chain of one-PE regions of a GEMV with SdkLayout: two regions side by side, streams of the host on both.
import argparse

import numpy as np
from cerebras.sdk.runtime.sdkruntimepybind import (
    Color,
    Edge,
    Route,
    RoutingPosition,
    SdkLayout,
    SdkRuntime,
    SdkTarget,
    SimfabConfig,
    get_platform,
)

parser = argparse.ArgumentParser()
parser.add_argument("--arch", default="wse3")
parser.add_argument("--cmaddr")
args = parser.parse_args()
target = SdkTarget.WSE2 if args.arch == "wse2" else SdkTarget.WSE3
platform = get_platform(args.cmaddr, SimfabConfig(dump_core=False), target)
layout = SdkLayout(platform)
M, K, rounds = 4, 3, 3
rng = np.random.default_rng(0)
A = rng.random((M, 2 * K)).astype(np.float32)
into, outof = RoutingPosition().set_output([Route.RAMP]), RoutingPosition().set_input([Route.RAMP])
regions, streams = [], []
for k in range(2):
    region = layout.create_code_region("./dot.csl", f"dot{k}", 1, 1)
    x_in, x_out, y_in, y_out = (Color(f"{n}{k}") for n in ("x_in", "x_out", "y_in", "y_out"))
    for color, name in ((x_in, "x_in"), (x_out, "x_out"), (y_in, "y_in"), (y_out, "y_out")):
        region.set_param_all(name, color)
    region.set_param_all("first_col", int(k == 0))
    region.set_param_all("last_row", 1)
    region.set_param_all("M", M)
    region.set_param_all("K", K)
    region.set_symbol_all("A", np.ascontiguousarray(A[:, k * K : k * K + K]).ravel(), M * K, 1)
    x_port = region.create_input_port(x_in, Edge.TOP, [into], K)
    y_port = region.create_input_port(y_in, Edge.LEFT, [into], M)
    out_port = region.create_output_port(y_out, Edge.RIGHT, [outof], M)
    region.place(2 + 5 * k, 3 + 2 * k)
    regions.append((region, x_port, y_port, out_port))
layout.connect(regions[0][3], regions[1][2])
x_streams = [layout.create_input_stream(r[1]) for r in regions]
y_stream = layout.create_input_stream(regions[0][2])
out_stream = layout.create_output_stream(regions[1][3])
artifacts = layout.compile(out_prefix="out")
runner = SdkRuntime(artifacts, platform, memcpy_required=False)
runner.load()
runner.run()
for _ in range(rounds):
    x, b = rng.random(2 * K).astype(np.float32), rng.random(M).astype(np.float32)
    out = np.zeros(M, np.float32)
    handle = runner.receive(out_stream, out, M, nonblock=True)
    for k, s in enumerate(x_streams):
        runner.send(s, np.ascontiguousarray(x[k * K : k * K + K]), nonblock=True)
    runner.send(y_stream, b, nonblock=True)
    runner.task_wait(handle)
    np.testing.assert_allclose(out, A @ x + b, rtol=1e-5)
runner.stop()
print("SUCCESS!")
