# SPDX-License-Identifier: Apache-2.0
"""The check of loops among Python's imports, on packages made for it."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import python_imports  # noqa: E402


def package(folder, files):
    for name, text in files.items():
        path = folder / "p" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder / "p"


def test_loops_are_found_wherever_the_import_stands(tmp_path):
    where = package(
        tmp_path,
        {
            "__init__.py": "from . import a, f\n",
            "a.py": "from .inner.b import thing\n",
            "inner/__init__.py": "",
            "inner/b.py": "from .. import c\nfrom .d import x\n",
            "inner/d.py": "import p.e\n",
            "c.py": "import math\n",
            "e.py": "def late():\n    from .a import nothing\n",
            "f.py": "from . import a\nfrom .c import x\n",
        },
    )
    imports = python_imports.imports_of(where)
    assert imports["p.inner.b"] == {"p.c", "p.inner.d"}
    assert python_imports.loops(imports) == [["p.a", "p.e", "p.inner.b", "p.inner.d"]]
    assert python_imports.problems(where) == []  # four are few


def test_a_long_loop_is_a_problem(tmp_path):
    count = python_imports.MOST + 1
    files = {f"m{i}.py": f"from .m{(i + 1) % count} import x\n" for i in range(count)}
    (problem,) = python_imports.problems(package(tmp_path, {"__init__.py": "", **files}))
    assert "p.m0, p.m1" in problem and str(count) in problem


def test_the_package_has_no_long_loop():
    root = pathlib.Path(__file__).resolve().parents[2]
    assert python_imports.problems(root / "python/weft") == []
