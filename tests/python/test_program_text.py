# SPDX-License-Identifier: Apache-2.0
"""Programs as text: older script, mistakes in it, files that hold none."""

import numpy as np
import pytest
from refusal import refused

import weft
from weft import script as T
from weft import te


def add(n=64):
    a, b = te.placeholder((n,), "float32", name="A"), te.placeholder((n,), "float32", name="B")
    return te.create_prim_func([a, b, te.compute((n,), lambda i: a[i] + b[i], name="C")])


def test_older_script_is_read():
    @T.prim_func
    def f(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
        for i in range(16):
            with T.block("B"):
                v = T.axis.spatial(16, i)
                x = T.float32()
                with T.let(x, A[v] * A[v]):
                    B[v] = T.if_then_else(v >= 1 and v < 15, x + x, T.float32(0), dtype="float32")

    assert weft.ir.structural_equal(T.from_source(f.script()), f)
    a, b = np.arange(16, dtype="float32"), weft.zeros(16, dtype="float32")
    weft.build(f)["main" if f.name == "main" else "f"](weft.asarray(a), b)
    expected = 2 * a * a
    expected[0] = expected[15] = 0
    np.testing.assert_array_equal(b.numpy(), expected)


def test_script_errors_say_what_is_wrong():
    head = '@T.prim_func\ndef f(A: T.Buffer((8,), "float32")):\n'
    step = head + "    for i in range(0, 8, 2):\n        A[i] = 0.0\n"
    error = refused(weft.ParseError, "parse.loop", T.from_source, step)
    assert "no step" in error.message and "multiply" in error.help
    other = head + '    A[0] = T.if_then_else(A[1] > 0.0, A[1], A[2], dtype="int32")\n'
    assert (
        "float32, not int32"
        in refused(weft.ParseError, "parse.types", T.from_source, other).message
    )


def test_te_joins_conditions():
    n = 9
    a = te.placeholder((n,), "float32", name="A")

    def padded(i):
        return te.if_then_else(te.all(i >= 2, i < n + 2, te.any(i != 5, i < 0)), a[i - 2], 0.0)

    f = te.create_prim_func([a, te.compute((n + 4,), padded, name="P")])
    x, out = np.arange(1, n + 1, dtype="float32"), weft.zeros(n + 4, dtype="float32")
    weft.build(f)["main"](weft.asarray(x), out)
    expected = np.pad(x, 2)
    expected[5] = 0
    np.testing.assert_array_equal(out.numpy(), expected)


def test_files_that_are_no_programs(tmp_path, capsys):
    from weft import cli

    assert cli.main(["compile", str(tmp_path / "none.weft"), "--target", "cpu"]) == 1
    error = capsys.readouterr().err
    assert (
        error.startswith("error[cli.file]: ") and "none.weft" in error and "No such file" in error
    )
    binary = tmp_path / "binary.weft"
    binary.write_bytes(b"\x7fELF\xff\xfe")
    assert cli.main(["compile", str(binary), "--target", "cpu"]) == 1
    assert capsys.readouterr().err.startswith("error[cli.text]: byte 4 ")


@pytest.mark.targets("wse")
def test_a_target_without_passes_says_so(tmp_path, capsys):
    from weft import cli

    program = tmp_path / "add.weft"
    program.write_text(add(8).script())
    arguments = ["compile", str(program), "--emit", "source", "--print-after", "all", "--target"]
    assert cli.main([*arguments, "wse:2x2"]) == 0
    assert "without passes" in capsys.readouterr().err
    assert cli.main([*arguments, "cpu"]) == 0
    assert "# after simplify" in capsys.readouterr().err


def test_a_word_of_the_script_is_no_program():
    from weft import script as T

    with pytest.raises(weft.Error):
        weft.build(T.no_such_function("text"), target="c")


@T.ir_module
class Twice:
    @T.prim_func
    def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        for i in range(8):
            with T.block("B"):
                v = T.axis.spatial(8, i)
                B[v] = A[v] * T.float32(2)


def test_a_class_is_read_from_its_decorator():
    """Before Python 3.11 the frame that decorates a class is at the line of the class."""
    assert "A[v] * T.float32(2)" in str(Twice) and list(Twice.functions) == ["main"]


@pytest.mark.parametrize(
    "value",
    [
        "T.float32(a)",
        "a.astype('float32')",
        "T.Cast('float32', a)",
        "T.Cast('handle', n)",
        "a + n",
        "a < n",
    ],
)
def test_handles_are_no_numbers(value):
    text = f"""
@T.prim_func
def main(a: T.handle, n: T.int32, B: T.Buffer((4,), "float32")):
    X = T.match_buffer(a, (4,), "int32")
    T.evaluate({value})
"""
    with pytest.raises(weft.Error, match="handle") as caught:
        weft.script.from_source(text)
    assert caught.value.code == "parse.types"
