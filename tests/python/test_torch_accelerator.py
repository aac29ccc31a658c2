# SPDX-License-Identifier: Apache-2.0
"""torch.device("weft") through torch's interfaces for accelerators: events, streams, generators.

The facts are those that PyTorch's own tests of an out-of-tree device (OpenReg) check of these three.
"""

import pytest

torch = pytest.importorskip("torch")

from weft.torch import _version  # noqa: E402

if not _version.DEVICES:
    pytest.skip(f"a device of torch's own needs torch 2.6, this is {torch.__version__}", allow_module_level=True)  # fmt: skip

import weft.torch.device as wd  # noqa: E402

if not wd.is_built():
    pytest.skip("the extension is not built: tools/test_torch2 builds it", allow_module_level=True)

wd.load()


@pytest.fixture(autouse=True)
def first_device():
    torch.accelerator.set_device_index(0)
    yield
    torch.accelerator.set_stream(torch.Stream(device="weft:0"))
    torch.accelerator.set_device_index(0)


def timed(index=1):
    return torch.Event(device=f"weft:{index}", enable_timing=True)


@pytest.mark.parametrize("device", ["weft", "weft:1", None])
def test_a_new_event_has_no_index_and_is_ready(device):
    event = torch.Event(device=device) if device else torch.Event()
    assert event.device.type == "weft" and event.device.index is None
    assert event.event_id == 0 and event.query()


def test_recorded_events_differ():
    stream = torch.Stream(device="weft:1")
    first, second = stream.record_event(), stream.record_event()
    assert first.device.index == 1 and 0 != first.event_id != second.event_id != 0
    second.synchronize()
    assert first.query() and second.query()


@pytest.mark.parametrize("index", [0, 1])
def test_an_event_takes_its_streams_device(index):
    event = torch.Event(device=f"weft:{index}")
    event.record(torch.Stream(device=f"weft:{index}"))
    assert event.device.index == index
    event.record(torch.Stream(device=f"weft:{index}"))  # again
    event.synchronize()
    assert event.query()


def test_time_between_events():
    stream, start, stop = torch.Stream(device="weft:1"), timed(), timed()
    start.record(stream)
    torch.ones(50, 50, device="weft:1") @ torch.ones(50, 50, device="weft:1")
    stop.record(stream)
    stream.synchronize()
    assert start.query() and stop.query() and start.elapsed_time(stop) > 0


def test_events_without_time_have_none():
    stream = torch.Stream(device="weft:1")
    start, stop = stream.record_event(), stream.record_event()
    stream.synchronize()
    with pytest.raises(ValueError, match="enable_timing=True"):
        start.elapsed_time(stop)


def test_record_without_a_stream():
    event = timed(0)
    event.record()
    event.synchronize()
    assert event.query()


def test_streams_wait_for_each_other():
    streams = [torch.Stream(device="weft:0") for _ in range(3)]
    assert len({s.stream_id for s in streams}) == 3
    x = torch.randn(30, 30, device="weft:0")
    event, results = streams[0].record_event(), []
    for stream in streams[1:]:
        stream.wait_event(event)
        stream.wait_stream(streams[0])
        with stream:
            results.append(x @ x)
    torch.accelerator.synchronize()
    assert event.query()
    torch.testing.assert_close(results[0].cpu(), results[1].cpu(), rtol=0, atol=0)


def test_streams_have_a_device():
    assert torch.Stream(device="weft").device_index == torch.weft.current_device()
    for stream in (torch.Stream(device="weft:1"), torch.Stream(1)):
        assert stream.device.type == "weft" and stream.device_index == 1 and stream.query()
        same = torch.Stream(
            stream_id=stream.stream_id, device_type=stream.device_type, device_index=1
        )
        assert same == stream and "device_type=weft, device_index=1" in repr(stream)


@pytest.mark.parametrize("index", [0, 1])
def test_the_current_stream(index):
    stream = torch.Stream(device=f"weft:{index}")
    with stream as entered:
        assert torch.accelerator.current_stream() == entered == stream
    torch.accelerator.set_stream(stream)
    assert torch.accelerator.current_stream() == stream


def test_the_current_device():
    torch.accelerator.set_device_index(1)
    x = torch.randn(20, 20, device="weft")
    torch.accelerator.synchronize()
    assert torch.accelerator.current_device_index() == 1 == (x @ x).sum().device.index
    with torch.accelerator.device_index(0):
        assert torch.ones(1, device="weft").device.index == 0


def test_generators():
    generator = torch.Generator(device="weft:1")
    assert generator.device.type == "weft" and generator.device.index == 1
    generator.manual_seed(42)
    assert generator.initial_seed() == 42


def test_states_of_all_devices():
    states = torch.weft.get_rng_state_all()
    drawn = [torch.rand(5, device=f"weft:{i}").cpu() for i in (0, 1)]
    torch.weft.set_rng_state_all(states)
    again = [torch.rand(5, device=f"weft:{i}").cpu() for i in (0, 1)]
    assert len(states) == torch.weft.device_count()
    for a, b in zip(drawn, again, strict=True):
        assert torch.equal(a, b)


def test_seeds_of_all_devices():
    torch.weft.manual_seed_all(42)
    assert [torch.weft.initial_seed(i) for i in (0, 1)] == [
        42,
        42,
    ] and torch.weft.initial_seed() == 42
    torch.weft.seed_all()
    first = torch.weft.initial_seed()
    torch.weft.seed_all()
    assert torch.weft.initial_seed() != first
