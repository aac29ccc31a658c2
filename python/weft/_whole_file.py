# SPDX-License-Identifier: Apache-2.0
"""Files that are written whole or not at all."""

import contextlib
import errno
import os


def _open_beside(folder):
    """A file in `folder` to write to, and its name: None where it has none yet (Linux), so that a killed process leaves nothing."""
    if hasattr(os, "O_TMPFILE") and os.path.isdir("/proc/self/fd"):
        try:
            return os.open(folder, os.O_WRONLY | os.O_TMPFILE | os.O_CLOEXEC, 0o666), None
        except OSError as reason:
            if reason.errno not in (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL):
                raise
    import tempfile

    return tempfile.mkstemp(dir=folder, prefix=".weft-")


def _name(handle, path):
    """Gives the open file a name."""
    folder, name = os.path.split(path)
    where = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:  # dst_dir_fd: only then Python follows the link of /proc
        os.link(f"/proc/self/fd/{handle}", name, dst_dir_fd=where)
    finally:
        os.close(where)


def write_whole(path, parts):
    """Writes beside the file and renames: a reader sees the old file or the whole new one. Into an open file, a device or a pipe as it is."""
    if hasattr(path, "write"):
        for part in parts:
            path.write(part)
        return
    path = os.fspath(path)
    if os.path.isdir(path):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if os.path.exists(path) and not os.path.isfile(path):
        # A device or a pipe: a file in its place would end it for everybody.
        with open(path, "wb") as f:
            f.writelines(parts)
        return
    folder = os.path.dirname(os.path.abspath(path))
    handle, temporary = _open_beside(folder)
    unnamed = temporary is None
    if unnamed:  # a name that cannot be guessed
        temporary = os.path.join(folder, f".weft-{os.urandom(8).hex()}")
    try:
        with os.fdopen(handle, "wb") as f:
            for part in parts:
                f.write(part)
            f.flush()
            if unnamed:
                _name(handle, temporary)
        os.replace(temporary, path)
    except BaseException:
        # Ctrl-C can come before the file has its name, and after it got its last one.
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
