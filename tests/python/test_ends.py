# SPDX-License-Identifier: Apache-2.0
"""A process that ends while a driver still compiles and runs what nobody has waited for ends without harm."""

import os
import subprocess
import sys

from present import present

present("opencl:0")

PROGRAM = """
import weft
for k, dtype in enumerate((weft.float32, weft.int32, weft.int8)):
    x = weft.arange(0, 100 + k, dtype=dtype, device="opencl:0")
    kept = (x + x) * x, weft.sort(x), weft.sum(x * 3)
print("done")
"""


def test_work_under_way(tmp_path):
    # With an empty cache the driver compiles at the first launch, on a thread of its own.
    for turn in range(3):
        environment = {**os.environ, "POCL_CACHE_DIR": str(tmp_path / str(turn))}
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, timeout=500
        )
        assert (done.returncode, done.stdout.split()) == (0, [b"done"]), done.stderr
