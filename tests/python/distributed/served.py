# SPDX-License-Identifier: Apache-2.0
"""Run by a launcher: runs the programs that tests name over a socket of each rank (Jobs in launchers.py), one after the other, in one job. Arguments: the job's
folder, and a file that is locked as long as there are tests.
"""

import fcntl
import gc
import json
import os
import runpy
import socket
import sys

from weft import distributed as dist

folder, users = sys.argv[1:]
dist.init()
rank = dist.rank()
dist.shutdown()


def commands():
    """(command, the connection that waits for its end), until the last test has ended."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(f"{folder}/binding.{rank}")
    listener.listen()
    os.rename(f"{folder}/binding.{rank}", f"{folder}/rank.{rank}")  # once it listens
    listener.settimeout(5)
    while True:
        try:
            peer = listener.accept()[0]
        except TimeoutError:
            with open(users) as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    continue
            return
        peer.settimeout(None)
        command = json.loads(peer.makefile().readline())
        if not command:
            return
        yield command, peer


for command, peer in commands():
    sys.argv = command
    sys.stdout.flush()
    out = os.open(f"{folder}/output.{rank}", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    kept = [os.dup(1), os.dup(2)]
    os.dup2(out, 1), os.dup2(out, 2), os.close(out)
    try:
        runpy.run_path(
            sys.argv[0], run_name="__main__"
        )  # what it raises ends the job, as it would by itself
    except SystemExit as end:
        if end.code:
            raise
    dist.shutdown()
    gc.collect()
    sys.stdout.flush(), sys.stderr.flush()
    os.dup2(kept[0], 1), os.dup2(kept[1], 2)
    for descriptor in kept:
        os.close(descriptor)
    peer.sendall(b"done")
