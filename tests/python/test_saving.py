# SPDX-License-Identifier: Apache-2.0
"""weft.save and weft.load as users of NumPy and PyTorch call them."""

import os

import numpy as np
import pytest
import weft
from weft import nn, optim


def test_load_reads_what_numpy_and_weft_wrote(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(6).reshape(2, 3))
    np.savez(tmp_path / "b.npz", x=np.ones(2, "float32"))
    weft.save(tmp_path / "c.npy", weft.asarray([1.5, 2.5]))
    weft.save_safetensors(tmp_path / "d.safetensors", {"y": weft.asarray([7])})
    assert weft.load(tmp_path / "a.npy").tolist() == [[0, 1, 2], [3, 4, 5]]
    assert weft.load(str(tmp_path / "b.npz"))["x"].tolist() == [1, 1]
    assert weft.load(tmp_path / "c.npy").tolist() == [1.5, 2.5]
    assert weft.load(tmp_path / "d.safetensors")["y"].tolist() == [7]


def test_a_checkpoint_is_saved_in_the_order_of_pytorch(tmp_path):
    model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 1))
    optimizer = optim.Adam(model.parameters(), lr=0.1)

    def step():
        optimizer.zero_grad()
        model(weft.tensor([[1.0, -2.0, 0.5]])).sum().backward()
        optimizer.step()
        return [p.tolist() for p in model.parameters()]

    step()
    saved = {"epoch": 3, "model": model.state_dict(), "optimizer": optimizer.state_dict()}
    weft.save(saved, tmp_path / "c.pt")
    wanted = step()
    got = weft.load(tmp_path / "c.pt")
    assert got["epoch"] == 3 and got["optimizer"].keys() == optimizer.state_dict().keys()
    model.load_state_dict(got["model"])
    optimizer.load_state_dict(got["optimizer"])
    assert step() == wanted

    weft.save(model.state_dict(), tmp_path / "weights.pt")  # one level: a file without a tree
    assert weft.load_safetensors(tmp_path / "weights.pt").keys() == model.state_dict().keys()


def test_names_and_types_of_a_tree_come_back(tmp_path):
    tree = {
        "a.b": weft.asarray([1]), "a": {"b": weft.asarray([2])}, 7: (None, [True, 2.5, "t"]), "weft.tree": weft.asarray([3]),
    }  # fmt: skip
    weft.save(tmp_path / "t", tree)
    got = weft.load(tmp_path / "t")
    assert got["a.b"].tolist() == [1] and got["a"]["b"].tolist() == [2]
    assert got[7] == (None, [True, 2.5, "t"]) and got["weft.tree"].tolist() == [3]
    with pytest.raises(weft.DTypeError, match="model is a Linear") as refusal:
        weft.save(tmp_path / "m", {"model": nn.Linear(2, 2)})
    assert refusal.value.code == "io.save.type" and "state_dict" in str(refusal.value)
    arrays = weft.load_arrays(tmp_path / "t")
    for text in (b"[", b'["dict", 3]', b'["array", "absent"]', b'["set", []]', b"[" * 100000):
        arrays["weft.tree"] = weft.asarray(np.frombuffer(text, "uint8"))
        weft.save_safetensors(tmp_path / "t", arrays)
        with pytest.raises(weft.IOError) as refusal:
            weft.load(tmp_path / "t")
        assert refusal.value.code == "io.tree"


def test_files_are_closed(tmp_path):
    tree = {"a": weft.ones((3,)), "b": [weft.zeros((2, 2))]}

    def once(name):
        weft.save(tmp_path / name, tree)
        weft.load(tmp_path / name)
        weft.save_safetensors(tmp_path / name, {"a": tree["a"]})
        weft.load_arrays(tmp_path / name)
        (tmp_path / "broken").write_bytes(b"no file of arrays")
        with pytest.raises(weft.IOError):
            weft.load(tmp_path / "broken")

    once("first")
    before = sorted(os.listdir("/proc/self/fd"))
    for k in range(3):
        once(f"t{k}")
    assert sorted(os.listdir("/proc/self/fd")) == before


def test_functions_of_methods_take_lists_as_numpy_does():
    """A list of whole numbers stays one."""
    for name in ("cumsum", "cumprod", "ravel", "flipud"):
        got = getattr(weft, name)([3, 1, 2])
        wanted = getattr(np, name)([3, 1, 2])
        assert got.tolist() == wanted.tolist() and got.dtype == "int64", name
    assert np.allclose(weft.fft.rfftfreq(8, 0.5).numpy(), np.fft.rfftfreq(8, 0.5))
    assert np.allclose(weft.fft.fftfreq(7, 0.25).numpy(), np.fft.fftfreq(7, 0.25))


def test_a_type_is_a_function_as_in_numpy():
    assert weft.float32(2).dtype == "float32" and float(weft.float32(2)) == 2
    assert weft.int64([1.5, 2.5]).tolist() == [1, 2] and weft.bool(1).dtype == "bool"
