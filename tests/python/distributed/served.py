# SPDX-License-Identifier: Apache-2.0
"""Run by a launcher: runs the programs that a test names over a socket (Jobs in launchers.py), one after the other, in one job. Argument: the socket."""

import gc
import json
import os
import runpy
import socket
import sys

from weft import distributed as dist

asked = socket.socket(socket.AF_UNIX)
asked.connect(sys.argv[1])
dist.init()
asked.sendall(f"{dist.rank()}\n".encode())
dist.shutdown()
for line in asked.makefile():
    told = json.loads(line)
    sys.argv = told["command"]
    sys.stdout.flush()
    out = os.open(f"{told['output']}.{told['rank']}", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
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
    asked.sendall(b"done\n")
