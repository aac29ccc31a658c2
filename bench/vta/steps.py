# SPDX-License-Identifier: Apache-2.0
"""ResNet-18's convolutions by weft.vta.default_schedule and by weft.build, which are one code and must agree: share of
256 multiplications a cycle in the cycle model, without data.   PYTHONPATH=python python bench/vta/steps.py
"""

import time

import weft
from weft.vta import op

# Name: image, channels in and out, kernel, stride, how often the network has it.
LAYERS = {
    "C2": (56, 64, 64, 3, 1, 4),
    "C3": (56, 64, 128, 3, 2, 1),
    "C4": (56, 64, 128, 1, 2, 1),
    "C5": (28, 128, 128, 3, 1, 3),
    "C6": (28, 128, 256, 3, 2, 1),
    "C7": (28, 128, 256, 1, 2, 1),
    "C8": (14, 256, 256, 3, 1, 3),
    "C9": (14, 256, 512, 3, 2, 1),
    "C10": (14, 256, 512, 1, 2, 1),
    "C11": (7, 512, 512, 3, 1, 3),
}


def main():
    env = weft.vta.env()
    device = env.device(mode="cycles")
    total, ideal = [0, 0], 0
    for name, (size, ci, co, k, stride, repeats) in LAYERS.items():
        f = op.conv2d_packed(
            env, 1, ci, size, size, co, k, stride, k // 2, bias=True, shift=8, clip=(0, 127)
        )
        out = (size + 2 * (k // 2) - k) // stride + 1
        arrays = [
            weft.zeros(shape, dtype=dtype, device=device)
            for shape, dtype in (
                ((1, ci // 16, size, size, 1, 16), "int8"),
                ((co // 16, ci // 16, k, k, 16, 16), "int8"),
                ((co // 16, 1, 16), "int32"),
                ((1, co // 16, out, out, 1, 16), "int8"),
            )
        ]
        start = time.perf_counter()
        steps = weft.vta.default_schedule(f, env)
        seconds = time.perf_counter() - start
        cycles = [
            weft.build(p, target=env.target).time_evaluator("main", number=1)(*arrays).cycles
            for p in (steps, f)
        ]
        macs = ci * co * k * k * out * out / 256
        ideal += macs * repeats
        total = [t + c * repeats for t, c in zip(total, cycles, strict=True)]
        shares = [f"{100 * macs / c:5.1f}" for c in cycles]
        print(
            f"{name:4} steps {shares[0]} %   build {shares[1]} %   scheduled in {seconds:.2f} s",
            flush=True,
        )
    print(f"C2-C11 steps {100 * ideal / total[0]:.2f} %   build {100 * ideal / total[1]:.2f} %")


if __name__ == "__main__":
    main()
