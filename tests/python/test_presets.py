# SPDX-License-Identifier: Apache-2.0
"""The presets: each is one that CMake takes; `lean` configures where only a compiler, Python and nanobind are, and
links nothing of a card's."""

import json
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
OPTIONAL = ["TBB", "Protobuf", "gRPC"]  # packages that the full build takes when they are there
TOOLS = ["WEFT_CCACHE", "WEFT_MOLD", "WEFT_GRPC_PLUGIN", "WEFT_PYTHON3"]


def test_every_preset_is_listed():
    names = {
        p["name"] for p in json.loads((ROOT / "CMakePresets.json").read_text())["configurePresets"]
    }
    said = subprocess.run(
        ["cmake", "--list-presets"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    assert set(re.findall(r'^  "(\w+)"', said, re.M)) == names >= {"fast", "dev", "lean", "pi"}


@pytest.mark.skipif(not shutil.which("make"), reason="the preset's generator is make")
def test_the_lean_preset_needs_no_more_than_it_says(tmp_path):
    absent = [f"-DCMAKE_DISABLE_FIND_PACKAGE_{name}=ON" for name in OPTIONAL]
    absent += [f"-D{name}=OFF" for name in TOOLS]
    done = subprocess.run(
        ["cmake", "--preset", "lean", "-B", tmp_path, f"-DPython_EXECUTABLE={sys.executable}"]
        + absent,
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    folders = {p.name for p in (tmp_path / "src/weft/targets").iterdir() if p.is_dir()}
    assert {"ref", "null", "c", "cpu", "cuda", "opencl", "metal"} <= folders
    assert not {"qpu", "vta", "wse"} & folders and not (tmp_path / "tests").exists()
    (link,) = tmp_path.glob("python/bindings/CMakeFiles/weft_core.dir/link.txt")
    words = link.read_text()
    assert "libweft_target_cuda.a" in words and "mold" not in words
    assert not re.search(r"-lcuda|libcuda|nvrtc|OpenCL|LLVM|tbb|grpc|protobuf", words)
