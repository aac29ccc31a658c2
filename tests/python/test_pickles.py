# SPDX-License-Identifier: Apache-2.0
"""Copies and pickles of devices, programs, schedules, modules, tensors and layers."""

import copy
import pickle

import numpy as np
import pytest
import weft
from weft import te


def add(n=64):
    a, b = te.placeholder((n,), "float32", name="A"), te.placeholder((n,), "float32", name="B")
    return te.create_prim_func([a, b, te.compute((n,), lambda i: a[i] + b[i], name="C")])


@pytest.mark.targets("qpu")
def test_devices_and_programs_are_copied_and_pickled():
    device = weft.device("cpu")
    assert pickle.loads(pickle.dumps(device)) == device == copy.deepcopy(device)
    absent = weft.device("qpu:hw")
    assert pickle.loads(pickle.dumps(absent)).available == absent.available
    f = add()
    again = pickle.loads(pickle.dumps(f))
    assert isinstance(again, weft.PrimFunc) and weft.ir.structural_equal(again, f)
    assert again.name == f.name and copy.deepcopy(f) == f
    both = weft.IRModule({"f": add(), "g": add(32)})
    assert weft.ir.structural_equal(pickle.loads(pickle.dumps(both)), both)


def test_a_schedule_is_pickled_with_its_steps():
    sch = weft.Schedule(add())
    (i,) = sch.get_loops("C")
    outer, inner = sch.split(i, [None, 8])
    sch.vectorize(inner)
    for other in (pickle.loads(pickle.dumps(sch)), copy.deepcopy(sch), copy.copy(sch)):
        assert weft.ir.structural_equal(other.mod, sch.mod)
        assert other.trace.as_json() == sch.trace.as_json()
    other.parallel(other.get_loops("C")[0])  # a copy goes its own way
    assert not weft.ir.structural_equal(other.mod, sch.mod)
    assert repr(outer) == "weft.LoopRef(i_0)" and repr(sch.get_block("C")).startswith(
        "weft.BlockRef("
    )


def test_a_module_is_pickled_and_called():
    module = weft.build(add(), target=weft.device("cpu"))
    a = weft.asarray(np.arange(64, dtype="float32"))
    for m in (module, pickle.loads(pickle.dumps(module)), copy.deepcopy(module)):
        out = weft.zeros(64, dtype="float32")
        m(a, a, out)
        np.testing.assert_array_equal(out.numpy(), 2 * a.numpy())


def test_tensors_and_layers_are_copied_and_pickled():
    x = weft.Tensor([1.0, 2.0, 3.0])
    (x * x).sum().backward()
    y = copy.deepcopy(x)
    assert y.requires_grad and y.grad.tolist() == [2.0, 4.0, 6.0] and y is not x
    y.data = y.data * 5.0
    assert x.tolist() == [1.0, 2.0, 3.0]
    z = pickle.loads(pickle.dumps(weft.Tensor([1, 2], dtype="float64", requires_grad=False)))
    assert z.dtype == weft.float64 and not z.requires_grad and z.tolist() == [1.0, 2.0]
    model = weft.nn.Sequential(weft.nn.Linear(3, 4), weft.nn.ReLU(), weft.nn.Linear(4, 1))
    twin = copy.deepcopy(model)
    other = pickle.loads(pickle.dumps(model))
    data = weft.Tensor(np.random.RandomState(0).rand(5, 3).astype("float32"))
    for m in (twin, other):
        np.testing.assert_array_equal(m(data).numpy(), model(data).numpy())
        assert all(type(p) is weft.nn.Parameter for p in m.parameters())
    optimizer = weft.optim.SGD(twin.parameters(), lr=0.5)
    twin(data).sum().backward()
    optimizer.step()
    np.testing.assert_array_equal(other(data).numpy(), model(data).numpy())
    assert not np.array_equal(twin(data).numpy(), model(data).numpy())


@pytest.mark.parametrize("kind", ["PrimFunc", "IRModule"])
def test_places_in_damaged_programs_are_counted_from_their_first_line(kind):
    with pytest.raises(weft.ParseError, match=r"<pickle>:1:"):
        weft.ir._read(kind, "def")
