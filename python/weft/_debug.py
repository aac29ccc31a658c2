# SPDX-License-Identifier: Apache-2.0
"""The terminal of the debugger for simulated machines: commands from files and standard input, answers to standard
output. The debugger itself is in each shared library that simulates; all of them use this terminal."""

from __future__ import annotations

import ctypes
import sys

_PROMPT = "(weft) "
_Read = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.POINTER(ctypes.c_char), ctypes.c_int32)
_Write = ctypes.CFUNCTYPE(None, ctypes.c_char_p)


class _Console(ctypes.Structure):
    _fields_ = [("read", ctypes.c_void_p), ("write", ctypes.c_void_p)]


class Terminal:
    """Gives the lines of `commands`, then those of standard input; on a pipe each line is shown after the prompt."""

    def __init__(self, commands: list[str]):
        self._commands = list(commands)
        self._calls = _Read(self._read), _Write(self._write)
        self.addresses = tuple(ctypes.cast(c, ctypes.c_void_p).value for c in self._calls)

    def line(self) -> str | None:
        if self._commands:
            line = self._commands.pop(0)
        elif sys.stdin is None or sys.stdin.closed:
            return None
        elif sys.stdin.isatty() and sys.stdout.isatty():
            try:
                import readline  # noqa: F401  (editing and history)
            except ImportError:
                pass
            while True:
                try:
                    return input(_PROMPT)
                except EOFError:
                    return None
                except KeyboardInterrupt:
                    print()
        else:
            line = sys.stdin.readline()
            if not line:
                return None
        line = line.rstrip("\r\n")
        self._print(f"{_PROMPT}{line}\n")
        return line

    def _print(self, text: str) -> None:
        try:
            sys.stdout.write(text)
            sys.stdout.flush()
        except (BrokenPipeError, ValueError):  # nobody reads
            pass

    def _read(self, line, capacity: int) -> int:
        try:
            text = self.line()
        except BaseException:  # noqa: BLE001  (nothing may leave through C)
            return -1
        if text is None:
            return -1
        data = text.encode(errors="replace")[:capacity]
        ctypes.memmove(line, data, len(data))
        return len(data)

    def _write(self, text: bytes) -> None:
        self._print(text.decode(errors="replace"))


_terminal: Terminal | None = None
_libraries: list = []


def active() -> bool:
    return _terminal is not None


def begin(commands: list[str]) -> None:
    """From now on this process debugs every simulated machine: those of weft's core at once, those of other shared
    libraries when they are opened."""
    global _terminal
    from . import _core

    _terminal = Terminal(commands)
    _core.debug_attach(*_terminal.addresses)


def attach(library) -> None:
    """A shared library that simulates has been opened."""
    if _terminal is None or any(library._handle == other._handle for other in _libraries):
        return
    _libraries.append(library)
    library.weft_debug_attach.restype = None
    library.weft_debug_attach.argtypes = [ctypes.POINTER(_Console)]
    library.weft_debug_attach(ctypes.byref(_Console(*_terminal.addresses)))


def has_quit(error: BaseException) -> bool:
    """Whether the command `quit` has ended the program."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if getattr(error, "code", "") == "debug.quit" or "error[debug.quit]" in str(error):
            return True
        error = error.__cause__ or error.__context__
    return False
