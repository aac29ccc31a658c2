# SPDX-License-Identifier: Apache-2.0
"""Memory shared with other libraries: DLPack, legacy and 1.x, both ways, whoever lets go first; the buffer protocol;
__cuda_array_interface__."""

import ctypes
import gc

import numpy as np
import pytest

import weft

CUDA = weft.device("cuda:0").available
needs_cuda = pytest.mark.skipif(not CUDA, reason="no CUDA device on this machine")


class DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Legacy(ctypes.Structure):
    name = b"dltensor"
    _fields_ = [("t", DLTensor), ("context", ctypes.c_void_p), ("deleter", DELETER)]


class Versioned(ctypes.Structure):
    name = b"dltensor_versioned"
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", DELETER),
        ("flags", ctypes.c_uint64),
        ("t", DLTensor),
    ]


api = ctypes.pythonapi
api.PyCapsule_New.restype = ctypes.py_object
api.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
api.PyCapsule_GetPointer.restype = ctypes.c_void_p
api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
api.PyCapsule_GetName.restype = ctypes.c_char_p
api.PyCapsule_GetName.argtypes = [ctypes.py_object]
api.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]
USED = {Legacy: b"used_dltensor", Versioned: b"used_dltensor_versioned"}


class Producer:
    """An exporter that counts how often its memory is given back."""

    def __init__(self, kind, values, flags=0, strides=None, shape=None, code=2, bits=32, device=1):
        self.kind, self.values, self.freed = kind, values, 0
        shape = values.shape if shape is None else shape
        self.shape = (ctypes.c_int64 * max(len(shape), 1))(*shape)
        steps = strides and (ctypes.c_int64 * len(strides))(*strides)
        self.managed = m = kind()
        m.t.data, m.t.device_type, m.t.ndim = values.ctypes.data, device, len(shape)
        m.t.code, m.t.bits, m.t.lanes = code, bits, 1
        m.t.shape = ctypes.cast(self.shape, ctypes.POINTER(ctypes.c_int64))
        if steps:
            self.steps = steps
            m.t.strides = ctypes.cast(steps, ctypes.POINTER(ctypes.c_int64))

        def free(_):
            self.freed += 1

        m.deleter = self.callback = DELETER(free)
        if kind is Versioned:
            m.major, m.minor, m.flags = 1, 1, flags

    def __dlpack_device__(self):
        return (self.managed.t.device_type, 0)

    def __dlpack__(self, **options):
        if self.kind is Legacy and options:
            raise TypeError("an exporter of before 1.0 takes no options")
        return api.PyCapsule_New(ctypes.addressof(self.managed), self.kind.name, None)


@pytest.mark.parametrize("kind", [Legacy, Versioned])
def test_import_keeps_the_exporter_s_memory_until_the_last_view_goes(kind):
    p = Producer(kind, np.arange(6, dtype="float32").reshape(2, 3))
    x = weft.from_dlpack(p)
    view = x[1:, ::2]
    assert x.tolist() == [[0, 1, 2], [3, 4, 5]] and p.freed == 0
    p.values[1, 2] = 9  # the same memory
    assert view.tolist() == [[3, 9]]
    x[1, 0] = 7
    assert p.values[1, 0] == 7
    del x
    gc.collect()
    assert p.freed == 0 and view.tolist() == [[7, 9]]
    del view
    gc.collect()
    assert p.freed == 1


@pytest.mark.parametrize("kind", [Legacy, Versioned])
def test_import_of_strides_offsets_and_refused_tensors(kind):
    values = np.arange(12, dtype="float32")
    p = Producer(kind, values[4:], shape=(2, 2), strides=(-4, 2))
    assert weft.from_dlpack(p).tolist() == [[4, 6], [0, 2]]
    assert weft.from_dlpack(Producer(kind, values, shape=(0, 3))).shape == (0, 3)
    assert weft.from_dlpack(Producer(kind, values, shape=())).item() == 0
    for bad, text in (
        (Producer(kind, values, shape=(-1,)), "negative"),
        (Producer(kind, values, device=7), "device type 7"),
    ):
        with pytest.raises(BufferError, match=text):
            weft.from_dlpack(bad)
        assert bad.freed == 0
    with pytest.raises(weft.DTypeError) as info:
        weft.from_dlpack(Producer(kind, values, code=2, bits=128))
    assert info.value.code == "array.dtype.unsupported"
    again = Producer(kind, values)
    capsule = again.__dlpack__()
    x = weft._core._from_dlpack(capsule, None, None)
    assert api.PyCapsule_GetName(capsule) == USED[kind]
    with pytest.raises(ValueError, match="PyCapsule|capsule"):
        weft._core._from_dlpack(capsule, None, None)  # used once
    del x
    gc.collect()
    assert again.freed == 1


def test_read_only_memory_is_copied():
    p = Producer(Versioned, np.arange(3, dtype="float32"), flags=1)
    x = weft.from_dlpack(p)
    x[0] = 5
    assert p.values[0] == 0 and p.freed == 1
    with pytest.raises(BufferError, match="read-only"):
        weft.from_dlpack(Producer(Versioned, np.zeros(3, "float32"), flags=1), copy=False)


def consume(capsule, kind):
    """What a consumer does: takes the pointer, renames the capsule."""
    managed = ctypes.cast(api.PyCapsule_GetPointer(capsule, kind.name), ctypes.POINTER(kind))[0]
    api.PyCapsule_SetName(capsule, USED[kind])
    return managed


@pytest.mark.parametrize("kind", [Legacy, Versioned])
def test_export_outlives_the_array_and_the_capsule(kind):
    live = weft.ones((1000,)).handle.nbytes  # the pool is warm
    assert live == 4000
    x = weft.asarray(np.arange(6, dtype="float32").reshape(2, 3)).copy()
    options = {"max_version": (1, 0)} if kind is Versioned else {}
    capsule = x.T.__dlpack__(**options)
    m = consume(capsule, kind)
    t = m.t
    assert (t.device_type, t.ndim, t.code, t.bits, t.lanes) == (1, 2, 2, 32, 1)
    assert t.byte_offset == 0 and t.shape[:2] == [3, 2] and t.strides[:2] == [1, 3]
    if kind is Versioned:
        assert m.major == 1 and m.flags == 0
    del x, capsule
    gc.collect()
    for _ in range(20):  # a freed block would be handed out again and overwritten
        weft.full((6,), 99.0)
    data = ctypes.cast(t.data, ctypes.POINTER(ctypes.c_float))
    assert data[:6] == [0, 1, 2, 3, 4, 5]
    m.deleter(ctypes.addressof(m))


@pytest.mark.parametrize("kind", [Legacy, Versioned])
def test_export_copies_negative_strides_and_says_so(kind):
    x = weft.asarray([1.0, 2.0, 3.0])[::-1]
    options = {"max_version": (1, 2)} if kind is Versioned else {}
    m = consume(x.__dlpack__(**options), kind)
    assert ctypes.cast(m.t.data, ctypes.POINTER(ctypes.c_float))[:3] == [3, 2, 1]
    assert m.t.strides[0] == 1
    if kind is Versioned:
        assert m.flags & 2
    m.deleter(ctypes.addressof(m))
    with pytest.raises(BufferError, match="negative strides"):
        x.__dlpack__(copy=False)
    empty = consume(weft.zeros((0, 2)).__dlpack__(**options), kind)
    assert not empty.t.data
    empty.deleter(ctypes.addressof(empty))
    scalar = consume(weft.asarray(3.0).__dlpack__(**options), kind)
    assert scalar.t.ndim == 0
    scalar.deleter(ctypes.addressof(scalar))


def test_a_copy_is_a_copy_and_streams_belong_to_cards():
    x = weft.asarray([1.0, 2.0])
    m = consume(x.__dlpack__(copy=True, max_version=(1, 0)), Versioned)
    assert m.flags & 2 and m.t.data != x.handle.ptr()
    m.deleter(ctypes.addressof(m))
    with pytest.raises(BufferError, match="no stream"):
        x.__dlpack__(stream=1)
    with pytest.raises(BufferError, match="own device"):
        x.__dlpack__(dl_device=(4, 0))


@pytest.mark.parametrize("name", ["opencl:0", "qpu", "vta"])
def test_devices_without_pointers_export_by_copies_to_the_host(name):
    device = weft.device(name)
    if not device.available:
        pytest.skip(f"{name} is not here: {device.reason}")
    x = weft.asarray([1.0, 2.0, 3.0]).to(device)
    if name.startswith("opencl"):  # a cl_mem: DLPack's device type 4
        assert x.__dlpack_device__()[0] == 4 and "dltensor" in repr(x.__dlpack__())
    else:
        with pytest.raises(BufferError, match=r"dl_device=\(1, 0\)"):
            x.__dlpack__()
    assert str(weft.from_dlpack(x).device) == str(device)  # weft's own need no protocol
    m = consume(x.__dlpack__(dl_device=(1, 0), max_version=(1, 0)), Versioned)
    assert m.flags & 2 and ctypes.cast(m.t.data, ctypes.POINTER(ctypes.c_float))[:3] == [1, 2, 3]
    m.deleter(ctypes.addressof(m))
    assert weft.from_dlpack(x, device="cpu").tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint16", "int64", "float16", "float64", "complex64"]
)
def test_buffers_both_ways(dtype):
    a = np.arange(6).reshape(2, 3).astype(dtype)
    x = weft.asarray(a)
    x[0, 0] = 1
    assert a[0, 0] == 1  # shared
    view = memoryview(x[:, ::-1])
    assert view.shape == (2, 3) and view.itemsize == a.itemsize and view.strides[1] < 0
    b = np.asarray(x.T)
    b[2, 1] = 0
    assert a[1, 2] == 0
    kept = np.asarray(weft.asarray(a).copy())
    gc.collect()
    np.testing.assert_array_equal(kept, a)
    a.flags.writeable = False
    y = weft.asarray(a)
    y[0, 0] = 0
    assert a[0, 0] == 1  # read-only memory was copied


class Card:
    """Something with __cuda_array_interface__ and nothing else."""

    def __init__(self, **fields):
        self.__cuda_array_interface__ = {
            "shape": (2, 3),
            "typestr": "<f4",
            "data": (0, False),
            "version": 3,
            "strides": None,
            **fields,
        }


def test_cuda_interface_is_absent_off_cards():
    x = weft.ones((2, 3))
    assert not hasattr(x, "__cuda_array_interface__")
    with pytest.raises(AttributeError, match=r"float32\[2, 3\] on cpu"):
        x.__cuda_array_interface__  # noqa: B018
    for fields, text in (
        ({"strides": (3, 1)}, "no multiple of 4"),
        ({"strides": (4,)}, "2 extents, 1 strides"),
        ({"typestr": ">f4"}, "big-endian"),
    ):
        with pytest.raises(weft.ArgumentError, match=text) as info:
            weft.asarray(Card(**fields))
        assert info.value.code == "array.cuda_interface.value"
    if not CUDA:
        with pytest.raises(weft.DeviceError, match="cuda"):
            weft.asarray(Card())


@needs_cuda
def test_cuda_interface_both_ways():
    x = weft.asarray(np.arange(12, dtype="float32").reshape(3, 4)).to("cuda:0")
    face = x.__cuda_array_interface__
    assert face["version"] == 3 and face["strides"] is None and face["stream"] is None
    owner = Card(shape=(3, 2), data=(face["data"][0] + 4, False), strides=(16, 8))
    owner.keep = x
    y = weft.asarray(owner)
    assert y.device == "cuda:0" and y.tolist() == [[1, 3], [5, 7], [9, 11]]
    y += 1
    assert x[0, 1].item() == 2
    assert x.T[:, ::2].__cuda_array_interface__["strides"] == (4, 32)
    del x, owner
    gc.collect()
    assert y.tolist() == [[2, 4], [6, 8], [10, 12]]


@needs_cuda
def test_dlpack_on_a_card_with_torch():
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("this torch has no CUDA")
    t = torch.arange(6.0, device="cuda").reshape(2, 3)
    x = weft.from_dlpack(t)
    assert x.device == "cuda:0"
    x += 1
    assert t.sum().item() == 21
    del t
    gc.collect()
    torch.cuda.empty_cache()
    assert x.sum().item() == 21
    back = torch.from_dlpack(x)
    del x
    gc.collect()
    back += 1
    assert back.is_cuda and back.sum().item() == 27
    assert weft.asarray(back).device == "cuda:0"
    assert weft.from_dlpack(back, device="cpu").sum().item() == 27
    with pytest.raises(weft.ArgumentError, match="ambiguous"):
        weft.from_dlpack(back).__dlpack__(stream=0)


def test_torch_makes_tensors_of_arrays_and_numpy_of_tensors():
    torch = pytest.importorskip("torch", reason="needs torch beside weft")
    values = np.arange(6, dtype="float32").reshape(2, 3)
    x = weft.asarray(values)
    for made in (
        torch.tensor(x),
        torch.as_tensor(x),
        torch.tensor([x[0], x[1]]),
        torch.from_dlpack(x),
        torch.from_numpy(x.numpy()),
        torch.tensor(x.T).T,
    ):
        assert tuple(made.shape) == (2, 3)
        np.testing.assert_array_equal(made.numpy(), values)
    for dtype in (weft.int64, weft.uint8):  # older versions of torch read small integers as int64
        made = torch.tensor(weft.asarray([1, 0], dtype=dtype))
        assert made.dtype in (torch.int64, getattr(torch, str(dtype)))
        assert made.tolist() == [1, 0]
    try:  # newer versions of torch read arrays without dimensions, older ones ask for their length
        assert torch.tensor(x[0, 1]).item() == 1
    except TypeError as refused:
        assert "torch.from_dlpack" in str(refused)
    held = weft.Tensor(values)
    np.testing.assert_array_equal(np.asarray(held), values)
    np.testing.assert_array_equal(torch.from_numpy(held.numpy()).numpy(), values)
    np.testing.assert_array_equal(torch.from_dlpack(held.detach()).numpy(), values)
    source = torch.ones(2, 3)
    back = weft.from_dlpack(source)
    source[0, 0] = 7
    assert back[0, 0].item() == 7
    back[1, 1] = 5
    assert source[1, 1].item() == 5


def test_iteration_gives_arrays_both_ways():
    x = weft.asarray([[1, 2], [3, 4], [5, 6]])
    assert all(isinstance(part, weft.NDArray) for part in (*x, *x[0], *reversed(x[0])))
    assert [part.tolist() for part in x] == x.tolist()
    assert [part.item() for part in reversed(x[:, 0])] == [5, 3, 1]
    assert [part.tolist() for part in reversed(x)] == x.tolist()[::-1]
    walk = iter(x)
    del x
    assert next(walk).tolist() == [1, 2]
    assert list(weft.zeros((0, 3))) == []
    with pytest.raises(TypeError, match="0-d"):
        iter(weft.asarray(1.0))
    with pytest.raises(TypeError, match="0-d"):
        reversed(weft.asarray(1.0))


def test_numpy_copies_any_layout():
    x = weft.reshape(weft.arange(24, dtype=weft.int16), (2, 3, 4))
    for view in (x, x.mT, x[:, ::-1], x[1:, :, ::2], x[0, 0, 0], x[:0]):
        plain = view.numpy()
        assert plain.dtype == np.int16 and plain.shape == view.shape
        assert plain.flags.c_contiguous and plain.flags.writeable
        assert plain.tolist() == view.tolist()
        plain[...] = -1
    assert x.tolist() == np.arange(24).reshape(2, 3, 4).tolist()
