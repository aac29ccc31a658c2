# SPDX-License-Identifier: Apache-2.0
"""What a benchmark measured, kept as a file: WEFT_RECORD=FILE.json python bench/...

`tools/benchmarks` makes docs/benchmarks.md of the files in bench/results. The file is written after each row, so that a run that
is ended early keeps what it had; without WEFT_RECORD nothing is written. WEFT_COMMIT names the commit where there is no git,
WEFT_RECORD_NOTE says what else was going on ("other work on the machine").
"""

import datetime
import json
import os
import pathlib
import platform
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def rounded(value):
    """A number with four figures: more would be noise."""
    return float(f"{value:.4g}")


def threads_in_words(count):
    return "one thread" if count == 1 else f"{count} threads"


def commit():
    if name := os.environ.get("WEFT_COMMIT"):
        return name
    found = subprocess.run(
        ["git", "-C", str(ROOT), "rev-parse", "--short=8", "HEAD"], capture_output=True, text=True
    )
    return found.stdout.strip()


def processor():
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    facts = dict(reversed([map(str.strip, line.split(":", 1)) for line in lines if ":" in line]))
    flags = facts.get("flags", "").split()
    vectors = "AVX-512" if "avx512f" in flags else "AVX2" if "avx2" in flags else "no AVX2"
    name = facts.get("model name", platform.machine())
    family = (
        f"family {facts['cpu family']}, model {facts['model']}, " if "cpu family" in facts else ""
    )
    return f"{os.cpu_count()} cores of {name} ({family}{vectors})"


def machine(device):
    """In words; of a card what PyTorch calls it, if PyTorch is there."""
    if device.split(":")[0] != "cuda" or "torch" not in sys.modules:
        return processor()
    torch = sys.modules["torch"]
    cards = torch.cuda.device_count()
    return f"{cards} x {torch.cuda.get_device_name(0)}"


def rivals():
    """Versions of the libraries that are loaded."""
    found = {n: sys.modules[n] for n in ("numpy", "scipy", "torch", "tvm") if n in sys.modules}
    return ", ".join(f"{n} {m.__version__}" for n, m in found.items())


class Record:
    """Rows of one run. `asked`: {group: {"least": ratio, "mean": ratio}}, "" for all rows together. `keep`: false in
    all but one of several processes of a run. `unit`: of the page; times are kept in seconds, others as they are."""

    def __init__(self, benchmark, device, asked=None, keep=True, unit="µs"):
        self.path = os.environ.get("WEFT_RECORD") if keep else None
        if not self.path:
            return
        script = os.path.relpath(sys.argv[0], ROOT)
        processes = os.environ.get("LOCAL_WORLD_SIZE")  # of torchrun
        python = f"torchrun --nproc-per-node {processes}" if processes else "python"
        self.run = dict(
            benchmark=benchmark,
            device=device,
            machine=machine(device),
            note=os.environ.get("WEFT_RECORD_NOTE", ""),
            date=datetime.date.today().isoformat(),
            commit=commit(),
            command=" ".join([python, script, *sys.argv[1:]]),
            rivals=rivals(),
            asked=asked or {},
            unit=unit,
            rows=[],
        )

    def row(self, group, name, ours=None, rival=None, **facts):
        """Seconds (or cycles) of both sides; `rival`: {name: seconds}, of which the least counts. Facts are kept as they are;
        `absent` and `wrong` say why a row has no times, or none that count."""
        if not self.path:
            return
        entry = dict(group=group, name=name)
        if rival:
            entry.update(
                ours=rounded(ours),
                rival={k: rounded(v) for k, v in rival.items()},
                ratio=rounded(min(rival.values()) / ours),
            )
        self.run["rows"].append({**entry, **facts})
        self.write()

    def write(self):
        if not self.path:
            return
        half = f"{self.path}.{os.getpid()}"
        with open(half, "w") as file:
            json.dump(self.run, file, indent=0, ensure_ascii=False)
            file.write("\n")
        os.replace(half, self.path)
