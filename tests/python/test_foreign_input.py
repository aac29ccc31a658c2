# SPDX-License-Identifier: Apache-2.0
"""What visitors hand over: values of a wrong kind, files of other machines, names of other libraries."""

import numpy as np
import pytest
from refusal import refused

import weft
from weft import script as T
from weft import te

# ---- what Python hands over


def _x():
    return te.placeholder((4,), "int32", name="A")[0]


@pytest.mark.parametrize(
    "kind, code, text, provoke",
    [
        (weft.DTypeError, "array.dims.type", "'abc'", lambda: weft.zeros("abc")),
        (weft.DTypeError, "array.dtype.unknown", "not an element type: 3", lambda: weft.zeros(2, dtype=3)),
        (weft.DTypeError, "array.scalar.type", "'x'", lambda: weft.full((2,), "x")),
        (weft.DTypeError, "device.type", "not a device: 7", lambda: weft.zeros(2, device=7)),
        (
            weft.ArgumentError,
            "array.numpy.copy",
            "copy=False",
            lambda: weft.zeros(2, device="opencl:0").__array__(copy=False),
        ),
        (weft.ShapeError, "array.tensor.data", "float32(2,)", lambda: setattr(weft.Tensor([1.0, 2.0]), "data", weft.zeros(3))),
        (weft.DTypeError, "python.division", "int32", lambda: _x() / 2),
        (weft.DTypeError, "python.expression", "not an expression", lambda: _x() + "1"),
        (weft.ArgumentError, "python.truth", "A[0] > 0", lambda: bool(_x() > 0)),
        (weft.ArgumentError, "te.create_prim_func.argument", "A[0]", lambda: te.create_prim_func([_x()])),
        (weft.IOError, "array.bytes.size", "needs 16 bytes, got 3", lambda: weft._core._from_bytes(b"abc", (4,), weft.float32)),
    ],
    ids=lambda v: v if isinstance(v, str) and "." in v else None,
)  # fmt: skip
def test_values_of_a_wrong_kind(kind, code, text, provoke):
    with pytest.raises(kind) as caught:
        provoke()
    assert caught.value.code == code and text in str(caught.value), caught.value


def test_a_program_without_source_is_refused():
    scope = {"T": T}
    exec("def main(A: T.Buffer((4,), 'float32')):\n    pass\n", scope)
    error = refused(weft.ParseError, "script.source", T.prim_func, scope["main"])
    assert "T.from_source(text)" in error.help


def test_files_of_machines_with_the_other_byte_order(tmp_path):
    for x in [
        np.arange(6, dtype=">f4").reshape(2, 3),
        np.asfortranarray(np.arange(6, dtype=">i2").reshape(2, 3)),
        (np.arange(3) + 2j).astype(">c16"),
        np.arange(4, dtype=">u8") << 40,
    ]:
        np.save(tmp_path / "x.npy", x)
        got = weft.load_arrays(tmp_path / "x.npy").numpy()
        assert got.dtype == x.dtype.newbyteorder("=")
        np.testing.assert_array_equal(got, x)


def test_the_manual_of_errors_knows_prefixes(capsys):
    from weft import cli

    assert cli.main(["errors", "schedule.split"]) == 0
    heads = [r for r in capsys.readouterr().out.splitlines() if r.startswith("error[")]
    assert len(heads) >= 4 and all(r.startswith("error[schedule.split.") for r in heads)
    assert cli.main(["errors", "schedule.split.facto"]) == 0  # a prefix, too
    assert cli.main(["errors", "schedule.splitt.factor"]) == 1
    err = capsys.readouterr().err
    assert "cli.errors.slug" in err and "schedule.split.factor" in err
    with pytest.raises(SystemExit) as stop:
        cli.main(["tune", "x.weft", "--target", "c", "--trials", "many"])
    assert stop.value.code == 2 and "'many' is not a whole number" in capsys.readouterr().err


def test_names_of_numpy_lead_to_ours():
    import re

    from weft._names import SUGGESTIONS

    with pytest.raises(AttributeError, match=r"'jit'; here it is weft\.compile"):
        weft.jit  # noqa: B018
    for name, ours in SUGGESTIONS.items():
        assert not hasattr(weft, name), name
        for path in re.findall(r"\bweft\.([\w.]+)", ours):
            value = weft
            for part in path.split("."):
                value = getattr(value, part)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'$"):
        weft.nothing  # noqa: B018
