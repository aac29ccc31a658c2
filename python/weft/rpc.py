# SPDX-License-Identifier: Apache-2.0
"""Devices served by another process: ``remote = weft.rpc.connect("127.0.0.1", 9091, key=...)``.

``remote.device("vta")`` is an ordinary device: ``weft.asarray(x, device=dev)``, ``.numpy()`` and compiled modules
work on it. ``remote.upload`` and ``remote.load_module`` run whole functions on the server, one round trip a call.
Everything that a connection holds on the server goes with it. Loading this module loads gRPC; ``import weft`` does not.
"""

from __future__ import annotations


import json
import os
import pathlib
from collections.abc import Callable
from typing import TYPE_CHECKING
from typing import Any as _Any

from ._core import shown
from ._boundary import publish as _publish
from ._boundary import publish_classes as _publish_classes
from . import _core
from ._errors import error
from .build import TimeResult

if TYPE_CHECKING:
    from . import Device

try:
    from . import _rpc
except ImportError as reason:  # built without gRPC, or its libraries are gone
    raise error(
        "io",
        "rpc.absent",
        "this build of weft has no remote devices",
        notes=[str(reason)],
        help="install libgrpc++-dev and protobuf-compiler-grpc, then build again",
    ) from reason

__all__ = ["connect", "local", "Remote", "RemoteModule", "RemoteFunction", "Server"]


class RemoteFunction:
    """A function of an uploaded module. Arguments are arrays of the remote device, ints and floats."""

    def __init__(self, module: _Any, name: _Any) -> None:
        self._module, self._name = module, name

    def __call__(self, *args: _Any) -> None:
        """One round trip: the server checks the arguments and runs. Raises weft.Error as a local call does."""
        self._module._core.call(self._name, _core.call_arguments(*args))

    def time(
        self, *args: _Any, number: int = 10, repeat: int = 3, min_seconds: float = 0.0
    ) -> TimeResult:
        """Measured on the server: a TimeResult, in seconds; simulated seconds with cycles on simulators."""
        return TimeResult(
            self._module._core.time(
                self._name, _core.call_arguments(*args), number, repeat, min_seconds
            )
        )


class RemoteModule:
    """A module on the server. ``f["main"](a, b, c)``; called itself it runs its only function."""

    def __init__(self, core: _Any) -> None:
        self._core = core
        self.functions = list(core.functions)

    def __getitem__(self, name: str) -> RemoteFunction:
        if not isinstance(name, str) or name not in self.functions:
            raise error(
                "value",
                "module.function.unknown",
                f"the module has no function {shown(name)}",
                notes=["functions: " + ", ".join(self.functions)],
            )
        return RemoteFunction(self, name)

    def __call__(self, *args: _Any) -> None:
        if len(self.functions) != 1:
            raise error(
                "value",
                "rpc.module.function",
                f"the module has {len(self.functions)} functions, which is meant?",
                notes=["functions: " + ", ".join(self.functions)],
            )
        self[self.functions[0]](*args)

    def time_evaluator(
        self,
        name: str = "main",
        dev: _Any = None,
        number: int = 10,
        repeat: int = 3,
        min_repeat_ms: float = 0,
    ) -> Callable[..., TimeResult]:
        """A function that times calls on the server: ``f.time_evaluator("main")(a, b, c).median`` in seconds."""
        function = self[name]

        def evaluate(*args):
            return function.time(
                *args, number=number, repeat=repeat, min_seconds=min_repeat_ms / 1000
            )

        return evaluate

    def __repr__(self):
        return f"weft.rpc.RemoteModule(functions={self.functions})"


def _bytes_of(path):
    try:
        return pathlib.Path(path).read_bytes()
    except OSError as reason:
        raise error(
            "io",
            "rpc.file.read",
            f"cannot read {shown(os.fspath(path))}: {reason.strerror}",
            help="check the path and its rights",
        ) from reason


class Remote:
    """A connection. It ends, and the server releases what it held, with its last device and array.

    `with` closes it at the end of the block.
    """

    def __init__(self, session: _Any, where: _Any) -> None:
        self._open, self._where, self._device = session, where, None

    @property
    def _session(self):
        if self._open is None:
            raise error(
                "device",
                "rpc.closed",
                f"the connection to {self._where} was closed",
                help="connect again with weft.rpc.connect",
            )
        return self._open

    def close(self) -> None:
        """Lets the connection go: it ends as soon as no device, module or array of it is left."""
        self._open = self._device = None

    def __enter__(self) -> _Any:
        return self

    def __exit__(self, *exception: _Any) -> None:
        self.close()

    def upload(
        self, path: str | os.PathLike[str], data: bytes | None = None, name: str | None = None
    ) -> None:
        """Sends a file, or `data` under the name `path`; the server keeps it for this connection, in memory.

        Raises weft.Error: rpc.file.name for a name that is no plain file name, rpc.limit.bytes.
        """
        if data is None:
            data = _bytes_of(path)
            name = name or pathlib.Path(path).name
        self._session.upload(name or str(path), bytes(data))

    def load_module(self, name: str | os.PathLike[str]) -> RemoteModule:
        """An uploaded module, loaded. Raises weft.Error: rpc.file.unknown listing the files, module.file.*."""
        return RemoteModule(self._session.load_module(pathlib.PurePath(name).name))

    def device(self, name: str = "") -> Device:
        """The served device. Raises weft.DeviceError (rpc.device.unknown) when the server serves another."""
        device = self._session.device(str(name))  # refuses a wrong name
        if self._device is None:
            self._device = _core.adopt_device(device)
        return self._device

    def reconfigure(self, config: _Any) -> None:
        """Gives this connection a new device: `config` is a JSON file, a dict, JSON text or options ("qpus=4").

        Arrays and modules of the old device must be gone: rpc.reconfigure.busy.
        """
        if isinstance(config, dict):
            text = json.dumps(config)
        elif (
            isinstance(config, os.PathLike) or isinstance(config, str) and config.endswith(".json")
        ):
            text = _bytes_of(config).decode("utf-8")
        elif isinstance(config, str):
            text = config
        else:
            raise TypeError(
                f"a configuration is a file, a dict or text, not a {type(config).__name__}"
            )
        self._session.reconfigure(text)
        self._device = None

    def program(self, bitstream: _Any = None) -> None:
        """Programs the chip with the bytes or the file; None: what the server has for its configuration."""
        if bitstream is None:
            content = b""
        elif isinstance(bitstream, (bytes, bytearray, memoryview)):
            content = bytes(bitstream)
        else:
            content = _bytes_of(bitstream)
        self._session.program(content)

    def stats(self) -> _Any:
        """The device's statistics and this connection's traffic, by name."""
        return {**self.device().stats(), **self._session.traffic()}

    def __repr__(self):
        return f"weft.rpc.Remote({self._where})"


def _text(value, what):
    """PEM text: as it is, or from the file of that name."""
    if value is None:
        return ""
    if isinstance(value, bytes):
        return value.decode("ascii")
    if isinstance(value, str) and value.lstrip().startswith("-----BEGIN"):
        return value
    try:
        return pathlib.Path(value).read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as reason:
        raise error(
            "io",
            "rpc.tls.file",
            f"cannot read the {what} {value}: {reason}",
            help="name a PEM file that may be read",
        ) from reason


def connect(
    host: str,
    port: int,
    key: str | None = "",
    tls_ca: str | os.PathLike[str] | None = None,
    tls_name: str = "",
    deadline: float = 10.0,
    run_deadline: float = 600.0,
) -> Remote:
    """Connects to ``weft serve``.

    `tls_ca` is PEM text or a file: the authority that signed the server's certificate; None: plain text.
    `tls_name` is the name in the certificate when it is not `host`. An answer must come within `deadline` seconds,
    that of a running kernel within `run_deadline`. Raises weft.Error: rpc.connect, rpc.key, rpc.busy, rpc.version;
    later rpc.deadline and rpc.lost.
    """
    session = _rpc.connect(
        str(host),
        int(port),
        key=key or "",
        tls_ca=_text(tls_ca, "certificate authority"),
        tls_name=tls_name,
        deadline=deadline,
        run_deadline=run_deadline,
    )
    return Remote(session, f"{host}:{port}")


def _module_files(paths):
    """Name to content. Raises weft.Error: rpc.modules.name for two of one name, module.file.* for what is no module."""
    files = {}
    for path in paths:
        name = pathlib.PurePath(path).name
        if name in files:
            raise error(
                "value",
                "rpc.modules.name",
                f'two of the modules to serve are named "{name}"',
                help="give each module a name of its own",
            )
        files[name] = _bytes_of(path)
        _core.load_module(os.fspath(path))  # a damaged file is refused now, not at the first client
    return files


class Server:
    """Serves a device of this process until stopped; each connection of a simulator gets a machine of its own.

    A `host` that other machines can reach needs a `key` and TLS (PEM text or files): rpc.bind.open otherwise.
    A connection may hold `session_bytes` on the device, in files and in programs. A key has at least 16 bytes:
    rpc.key.short. Who has it may run code of his own here, unless `modules` names the module files that are served:
    then connections load those by name and bring neither files nor programs (rpc.modules.only).
    """

    def __init__(
        self,
        device: str = "cpu",
        host: str = "127.0.0.1",
        port: int = 9091,
        key: str = "",
        tls_cert: _Any = None,
        tls_key: _Any = None,
        session_bytes: _Any = 1 << 30,
        sessions: int = 64,
        modules: _Any = (),
    ) -> None:
        self._core = _rpc.Server(
            str(device),
            _core.device_opener(str(device)),
            host=host,
            port=port,
            key=key or "",
            tls_cert=_text(tls_cert, "TLS certificate"),
            tls_key=_text(tls_key, "TLS key"),
            session_bytes=session_bytes,
            sessions=sessions,
            modules=_module_files(modules),
        )

    @property
    def port(self) -> _Any:
        """The port, chosen by the system when 0 was asked for."""
        return self._core.port

    @property
    def sessions(self) -> _Any:
        """Connections alive now."""
        return self._core.sessions

    @property
    def held_bytes(self) -> _Any:
        """What all connections hold."""
        return self._core.held_bytes

    def log(self, seconds: float = 0.0) -> _Any:
        """Lines since the last call: connections that came and went, refusals. Waits up to `seconds` for one."""
        return self._core.log(seconds)

    def stop(self) -> None:
        """Ends all connections and releases what they held."""
        self._core.stop()

    def __enter__(self) -> _Any:
        return self

    def __exit__(self, *exception: _Any) -> None:
        self.stop()


def local(device: str = "cpu") -> Remote:
    """A server and a connection to it inside this process: the same code paths without another machine."""
    session = _rpc.local(str(device), _core.device_opener(str(device)))
    return Remote(session, f"local {device}")


_publish(__name__)
_publish_classes(__name__)
