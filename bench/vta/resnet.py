# SPDX-License-Identifier: Apache-2.0
"""The quantised ResNet-18 on the VTA simulator, layer by layer: cycles by the compiler's own schedules, utilisation of
the matrix unit, host time of the whole network beside NumPy's (float64 BLAS, exact). Checked against NumPy.

    PYTHONPATH=python python bench/vta/resnet.py [size] [--config NAME] [--json FILE]
"""

import argparse
import json
import statistics
import time

import numpy as np

import weft


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("size", nargs="?", type=int, default=224)
    parser.add_argument("--config", default="sim")
    parser.add_argument("--json")
    args = parser.parse_args()
    env = weft.vta.env(args.config)
    net = weft.vta.net.resnet18(env, size=args.size)
    image = net.image(1)
    start = time.perf_counter()
    net.build()
    build = time.perf_counter() - start
    ours, numpys = [], []
    for _ in range(3):  # interleaved
        start = time.perf_counter()
        _, report = net.run(image)
        ours.append(time.perf_counter() - start)
        start = time.perf_counter()
        net.reference(image)
        numpys.append(time.perf_counter() - start)
    wrong = [
        layer.name
        for layer in net.layers[:-1]
        if env.BATCH == 1 and not np.array_equal(net.values[layer.name], net.expected[layer.name])
    ]
    if wrong:
        raise SystemExit(f"wrong: {wrong}")
    per_cycle = env.BATCH * env.BLOCK_IN * env.BLOCK_OUT
    rows, total, ideal = [], 0, 0.0
    for layer, (name, target, reason, cycles) in zip(net.layers, report, strict=True):
        total += cycles
        ideal += layer.macs / per_cycle if target != "cpu" else 0
        share = 100 * layer.macs / per_cycle / cycles if cycles and layer.macs else float("nan")
        rows.append({"layer": name, "target": target, "cycles": cycles, "utilisation": share})
        print(f"{name:16} {target:10} {cycles:>10,} {share:6.1f} %  {reason[:60]}")
    convs = [r for r in rows if "stage" in r["layer"]]
    macs = sum(layer.macs for layer in net.layers if "stage" in layer.name)
    inner = 100 * macs / per_cycle / sum(r["cycles"] for r in convs)
    print(f"all layers {total:,} cycles = {total / env.clock_hz * 1e3:.1f} ms at {env.clock_hz / 1e6:.0f} MHz; "
          f"C2 to C11 with bias, clip and residual {inner:.2f} %")  # fmt: skip
    print(
        f"host: build {build:.2f} s, run {statistics.median(ours):.3f} s, NumPy {statistics.median(numpys):.3f} s"
    )
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump({"rows": rows, "cycles": total, "c2_to_c11": inner, "run": ours}, file)


if __name__ == "__main__":
    main()
