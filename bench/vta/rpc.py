# SPDX-License-Identifier: Apache-2.0
"""Remote devices as Python sees them: `weft serve` in another process on this host, a small call and 16 MiB each way,
in plain text and with TLS.   python bench/vta/rpc.py
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import numpy as np

import weft

MIB16 = 16 << 20


def certificate():
    """The certificate and key of the tests."""
    root = pathlib.Path(__file__).resolve().parents[2]
    pem = (root / "tests/unit/rpc_test_certificate.h").read_text()
    return re.findall(r'R"\((-----BEGIN.*?)\)"', pem, re.DOTALL)


def best(work, rounds=7):
    out = []
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        out.append(time.perf_counter() - start)
    return min(out)


def measure(label, remote):
    device = remote.device("vta")

    def calls():
        for _ in range(200):
            device.synchronize()

    calls()
    data = np.arange(MIB16 // 4, dtype=np.int32)
    far = weft.asarray(data, device=device)

    def upload():
        weft.asarray(data, device=device)

    small, up, down = best(calls) / 200, best(upload), best(far.numpy)
    assert np.array_equal(far.numpy(), data)
    print(
        f"{label:6} small call {small * 1e6:6.1f} us (asked: 200)   16 MiB up {MIB16 / up * 1e-6:5.0f} MB/s "
        f"(asked: 250 in plain text)   down {MIB16 / down * 1e-6:5.0f} MB/s"
    )


def main():
    with tempfile.TemporaryDirectory() as folder:
        cert, key = certificate()
        names = [pathlib.Path(folder, n) for n in ("cert.pem", "key.pem")]
        for name, text in zip(names, (cert, key), strict=True):
            name.write_text(text)
        tls = ["--tls-cert", str(names[0]), "--tls-key", str(names[1])]
        for label, options, authority in (("plain", [], None), ("TLS", tls, cert)):
            command = [sys.executable, "-m", "weft", "serve", "--device", "vta", "--port", "0"]
            environment = {**os.environ, "WEFT_RPC_KEY": "bench"}
            with subprocess.Popen(
                command + options,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                env=environment,
            ) as server:
                try:
                    port = int(re.search(r":(\d+) ", server.stdout.readline()).group(1))
                    measure(
                        label, weft.rpc.connect("localhost", port, key="bench", tls_ca=authority)
                    )
                finally:
                    server.terminate()


if __name__ == "__main__":
    main()
