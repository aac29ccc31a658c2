# SPDX-License-Identifier: Apache-2.0
"""The type stubs in the package are what the run-time surface is, and a type checker accepts and refuses by them."""

import ast
import importlib
import importlib.util
import inspect
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest
from present import built

import weft
from weft import _boundary

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "python" / "weft"
MODULES = {
    "weft": "__init__.pyi",
    "weft.linalg": "linalg.pyi",
    "weft.fft": "fft.pyi",
    "weft.random": "random.pyi",
    "weft.init": "init.pyi",
    "weft.optim": "optim/__init__.pyi",
    "weft.data": "data.pyi",
    "weft.nn": "nn/__init__.pyi",
    "weft.nn.functional": "nn/functional.pyi",
    "weft.te": "te.pyi",
    "weft.ir": "ir.pyi",
    "weft.build": "build.pyi",
    "weft.amp": "amp.pyi",
    "weft.polynomial": "polynomial.pyi",
    "weft.func": "func.pyi",
    "weft.autograd": "autograd/__init__.pyi",
    "weft.autograd.functional": "autograd/functional.pyi",
    "weft.nn.utils": "nn/utils/__init__.pyi",
    "weft.nn.utils.rnn": "nn/utils/rnn.pyi",
}

# Overloads of these name the parameters that belong together.
SEVERAL_FORMS = {("weft.autograd", "grad")}


def tree(file):
    return ast.parse((PACKAGE / file).read_text())


def definitions(body):
    """Name -> list of nodes."""
    out = {}
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            out.setdefault(node.name, []).append(node)
        elif isinstance(node, ast.AnnAssign):
            out.setdefault(node.target.id, []).append(node)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                out.setdefault(alias.asname or alias.name, []).append(node)
    return out


def shape_of(node):
    """(name, kind, has a default) of each parameter of a definition."""
    a = node.args
    out, optional = [], len(a.posonlyargs) + len(a.args) - len(a.defaults)
    for k, p in enumerate([*a.posonlyargs, *a.args]):
        kind = "positional" if k < len(a.posonlyargs) else "both"
        out.append((p.arg, kind, k >= optional))
    if a.vararg:
        out.append((a.vararg.arg, "many", False))
    for p, value in zip(a.kwonlyargs, a.kw_defaults):
        out.append((p.arg, "keyword", value is not None))
    if a.kwarg:
        out.append((a.kwarg.arg, "keywords", False))
    return out


def run_time_shape(f):
    kinds = {
        inspect.Parameter.POSITIONAL_ONLY: "positional",
        inspect.Parameter.POSITIONAL_OR_KEYWORD: "both",
        inspect.Parameter.VAR_POSITIONAL: "many",
        inspect.Parameter.KEYWORD_ONLY: "keyword",
        inspect.Parameter.VAR_KEYWORD: "keywords",
    }
    return [
        (p.name, kinds[p.kind], p.default is not p.empty)
        for p in inspect.signature(f).parameters.values()
    ]


@pytest.mark.parametrize("name", MODULES)
def test_every_public_name_has_its_signature(name):
    module = importlib.import_module(name)
    stub = definitions(tree(MODULES[name]).body)
    public = getattr(module, "__all__", None) or [
        n
        for n, v in vars(module).items()
        if n[0] != "_"
        and getattr(v, "__module__", "") == name
        and (_boundary.is_function(v) or inspect.isclass(v))
    ]
    assert [n for n in public if n not in stub] == []
    compared = 0
    for n in public:
        value = getattr(module, n)
        for node in stub[n]:
            if isinstance(node, ast.ClassDef):
                assert inspect.isclass(value)
                for m in definitions(node.body).get("__init__", []):
                    if _boundary.is_function(value.__init__):
                        assert shape_of(m) == run_time_shape(value.__init__), n
                        compared += 1
            elif isinstance(node, ast.FunctionDef):
                if type(value).__name__ == "nb_func":
                    continue  # of the core: some Pythons show a signature, in another form
                try:
                    want = run_time_shape(value)
                except ValueError:
                    continue  # a function of the core that states no signature
                if (name, n) in SEVERAL_FORMS:
                    assert {p for p, *_ in shape_of(node)} <= {p for p, *_ in want}, n
                else:
                    assert shape_of(node) == want, n
                compared += 1
    here = [n for n in stub if not isinstance(stub[n][0], ast.ImportFrom)]
    assert compared >= min(2, len(here)) and here


def test_rows_of_the_table_are_all_there():
    stub = definitions(tree("__init__.pyi").body)
    for row in weft._core.elementwise_rows:
        assert len(stub[row["name"]]) == 1 + row["arity"], row["name"]


def annotated(stub, name):
    return [ast.unparse(node.returns) for node in stub[name]]


@pytest.mark.parametrize("module", ["linalg", "fft"])
def test_functions_of_tensors_are_typed_as_such(module):
    """Each function of one matrix is called with a tensor: its type of result says Tensor where one comes back, and nowhere else."""
    stub = definitions(tree(f"{module}.pyi").body)
    matrix = weft.Tensor((weft.eye(4) * 2.0 + 0.1).astype("float64"), requires_grad=True)
    wrong, called = [], 0
    for name, nodes in stub.items():
        if not isinstance(nodes[0], ast.FunctionDef):
            continue
        try:
            result = getattr(getattr(weft, module), name)(matrix)
        except (weft.Error, TypeError):
            continue  # it takes something else
        called += 1
        parts = result if isinstance(result, tuple) else [result]
        found = any(isinstance(p, weft.Tensor) for p in parts)
        if found != any("Tensor" in text for text in annotated(stub, name)):
            wrong.append(name)
    assert wrong == [] and called >= 12


@pytest.mark.parametrize("name", ["NDArray", "Tensor", "Device", "dtype"])
def test_members_of_the_core_s_classes(name):
    node = definitions(tree("__init__.pyi").body)[name][0]
    stub = set(definitions(node.body))
    cls = getattr(weft, name)
    public = {n for n in dir(cls) if n[0] != "_"}
    assert public - stub == set() and {n for n in stub if n[0] != "_"} - public == set()
    assert {n for n in stub if n[:2] == "__"} - set(dir(cls)) <= {
        "__iter__"
    }  # iterated by __getitem__
    operators = {n for n in dir(cls) if n[:2] == "__" and n.strip("_")[1:] in ("add", "sub", "mul")}
    assert operators <= stub


def test_the_tool_has_nothing_to_write():
    run = subprocess.run(
        [sys.executable, ROOT / "tools" / "make_stubs.py", "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert (PACKAGE / "py.typed").exists()


CEREBRAS = ROOT / "compat/cerebras"
needs_mypy = pytest.mark.skipif(
    not importlib.util.find_spec("mypy"), reason="mypy is not installed"
)


def mypy(cache, *arguments):
    """What mypy says; it reads the stubs anew for each set of options, so files of equal options go together."""
    start = [sys.executable, "-m", "mypy", "--follow-imports=silent", "--python-version", "3.11"]
    return subprocess.run(
        [*start, "--cache-dir", ROOT / "build/mypy-cache" / cache, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={"MYPYPATH": f"{ROOT / 'python'}:{CEREBRAS}:{ROOT / 'compat/needle'}", "PATH": ""},
    )


def test_the_schedule_s_steps_are_those_of_the_table():
    (node,) = definitions(tree("schedule.pyi").body)["Schedule"]
    stub = definitions(node.body)
    for name, _, _, fields in weft._core.schedule_primitives():
        (step,) = stub.pop(name)
        many = [field for field, *_, mode, _ in fields if mode == 2]
        want = [("self", "both", False)]
        want += [
            (field, "many" if mode == 2 else "keyword" if many else "both", mode == 1)
            for field, _, _, mode, _ in fields
        ]
        assert shape_of(step) == sorted(want, key=lambda p: p[1] == "keyword"), name
    assert set(stub) == {n for n in dir(weft.Schedule) if n[0] != "_"} - {
        row[0] for row in weft._core.schedule_primitives()
    } | {"__init__"}


def test_editors_show_the_manual_of_every_step_and_function():
    stub = ast.parse((ROOT / "python/weft/schedule.pyi").read_text()).body
    (steps,) = [node for node in stub if isinstance(node, ast.ClassDef)]
    shown = {f.name: ast.get_docstring(f) for f in steps.body if isinstance(f, ast.FunctionDef)}
    rows = [row[0] for row in weft._core.schedule_primitives()]
    assert [n for n in rows if shown[n] != inspect.getdoc(getattr(weft.Schedule, n))] == []
    names = ast.parse((ROOT / "python/weft/__init__.pyi").read_text()).body
    bare = [f.name for f in names if isinstance(f, ast.FunctionDef) and not ast.get_docstring(f)]
    assert [n for n in bare if inspect.getdoc(getattr(weft, n, None))] == []


def pages(folder, part="tutorial"):
    """The blocks of Python of each page of a part of the documentation, a file a page."""
    for page in sorted((ROOT / "docs" / part).glob("*.md")):
        blocks = re.findall(r"^```python\n(.*?)^```$", page.read_text(), re.S | re.M)
        if blocks:
            name = page.stem.replace("-", "_")
            (folder / f"page_{part}_{name}.py").write_text("\n".join(blocks))


@needs_mypy
def test_the_pages_pass_mypy_and_mistakes_do_not(tmp_path):
    pages(tmp_path)
    pages(tmp_path, "guide")
    mistakes = ROOT / "tests/python/typecheck/mistakes.py"
    run = mypy("pages", "--allow-redefinition", "--ignore-missing-imports", tmp_path, mistakes)
    errors = [line.split(":") for line in run.stdout.splitlines() if ": error:" in line]
    marked = {
        n for n, line in enumerate(mistakes.read_text().splitlines(), 1) if line.endswith("# refused")
    }  # fmt: skip
    assert {pathlib.Path(e[0]).name for e in errors} == {"mistakes.py"}, run.stdout
    assert {int(e[1]) for e in errors} == marked and len(marked) > 5, run.stdout


# basedpyright brings its Node; pyright fetches one. Strict mode needs the types of a NumPy newer than 1.24, too.
PYRIGHT = next((m for m in ("basedpyright", "pyright") if importlib.util.find_spec(m)), None)


def pyright(folder, *more_paths):
    """What pyright says in strict mode of the files below a folder."""
    settings = {
        "include": ["pages"],
        "typeCheckingMode": "strict",
        "extraPaths": [str(ROOT / "python"), *more_paths],
        "pythonVersion": "3.11",
    }
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    return subprocess.run(
        [sys.executable, "-m", PYRIGHT, "--pythonpath", sys.executable, "-p", folder],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.skipif(PYRIGHT is None, reason="basedpyright and pyright are not installed")
def test_the_tutorials_pass_pyright_in_strict_mode(tmp_path):
    (tmp_path / "pages").mkdir()
    pages(tmp_path / "pages")
    shutil.copy(ROOT / "tests/python/typecheck/script_program.py", tmp_path / "pages")
    run = pyright(tmp_path)
    assert run.returncode == 0, run.stdout


# Programs as users would write them: the five ways in (arrays, schedules, PyTorch, QPUs, CSL), and one for each module beside nn.
FACES = ROOT / "tests/python/typecheck/faces"
ARGUMENTS = {"csl": [str(ROOT / "examples/wse/gemv/layout.csl")]}
TARGETS = {"csl": ["wse"], "qpus": ["qpu"], "schedules": ["cpu"], "torches": ["wse", "qpu", "cpu"]}


def lacks_torch():
    """Why the program beside PyTorch is left out, or nothing: the types of older ones do not know torch.compile."""
    if not importlib.util.find_spec("torch"):
        return "torch is not installed"
    return "" if importlib.import_module("weft.torch").COMPILES else "this torch is older than 2.4"


def faces():
    """Those whose libraries are here."""
    absent = ["torches"] if lacks_torch() else []
    return [p for p in sorted(FACES.glob("*.py")) if p.stem not in absent]


@needs_mypy
def test_users_programs_pass_mypy_in_strict_mode():
    run = mypy("faces", "--strict", ROOT / "tests/python/typecheck/program.py", *faces())
    assert run.returncode == 0, run.stdout


@pytest.mark.skipif(PYRIGHT is None, reason="basedpyright and pyright are not installed")
def test_users_programs_pass_pyright_in_strict_mode(tmp_path):
    (tmp_path / "pages").mkdir()
    for face in faces():
        shutil.copy(face, tmp_path / "pages")
    run = pyright(tmp_path, str(CEREBRAS))
    assert run.returncode == 0, run.stdout


@pytest.mark.parametrize("face", sorted(p.stem for p in FACES.glob("*.py")))
def test_users_programs_run(face, tmp_path):
    if face == "torches" and (reason := lacks_torch()):
        pytest.skip(reason)
    for target in TARGETS.get(face, []):
        built(target)
    if face == "qpus" and not (PACKAGE / "lib/libweft_qpu.so").exists():
        pytest.skip("this build has no libweft_qpu.so (ninja weft_qpu)")
    path = os.pathsep.join([str(ROOT / "python"), str(CEREBRAS)])
    run = subprocess.run(
        [sys.executable, FACES / f"{face}.py", *ARGUMENTS.get(face, [])],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert run.returncode == 0 and "False" not in run.stdout, run.stdout + run.stderr


def test_signatures_of_what_tables_define():
    """Steps of schedules and the language's own functions are made from tables; their signatures name what they take."""
    loops = inspect.signature(weft.Schedule.reorder).parameters
    assert [p.kind.name for p in loops.values()] == ["POSITIONAL_OR_KEYWORD", "VAR_POSITIONAL"]
    split = inspect.signature(weft.Schedule.split).parameters
    assert [*split][:3] == ["self", "loop", "factors"] and split["factors"].default is inspect.Parameter.empty  # fmt: skip
    for name, count in (("popcount", 1), ("fma", 3), ("shift_left", 2)):
        found = inspect.signature(getattr(weft.te, name)).parameters
        assert [*found] == list("xyz"[:count]) and all(p.kind.name == "POSITIONAL_ONLY" for p in found.values()), name  # fmt: skip
