# SPDX-License-Identifier: Apache-2.0
"""A process of proxies that cut TCP connections. One JSON command a line on standard input, one answer a line:

{"port": P, "direction": "up"|"down", "limit": N|null, "reset": bool} -> {"id": I, "port": Q}: connections to Q go to P;
  the first is cut after N bytes of the direction ("up": to the server), by a FIN or a RST, and later ones are refused
{"passed": I} -> {"up": bytes, "down": bytes}
{"close": I} -> {}
"""

import json
import socket
import struct
import sys
import threading


class Proxy:
    def __init__(self, port, direction, limit, reset):
        self.target, self.direction, self.limit, self.reset = port, direction, limit, reset
        self.passed = {"up": 0, "down": 0}
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.cut, self.lock, self.sockets = threading.Event(), threading.Lock(), []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                client = self.listener.accept()[0]
            except OSError:
                return
            if self.cut.is_set():
                client.close()
                continue
            server = socket.create_connection(("127.0.0.1", self.target))
            with self.lock:
                self.sockets += [client, server]
            for way, a, b in (("up", client, server), ("down", server, client)):
                threading.Thread(target=self._pump, args=(way, a, b), daemon=True).start()

    def _pump(self, way, source, sink):
        try:
            while self.limit != 0 or way != self.direction:
                data = source.recv(65536)
                if not data:
                    break
                if way == self.direction and self.limit is not None:
                    data = data[: self.limit - self.passed[way]]
                sink.sendall(data)
                self.passed[way] += len(data)
                if way == self.direction and self.passed[way] == self.limit:
                    break
        except OSError:
            pass
        self.end()

    def end(self):
        self.cut.set()
        with self.lock:
            for s in self.sockets:
                try:
                    if self.reset:  # what is unsent is dropped, and the peer sees a RST
                        linger = struct.pack("ii", 1, 0)
                        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                    s.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
                s.close()
            self.sockets = []

    def close(self):
        try:
            self.listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.listener.close()
        self.end()


def main():
    proxies = {}
    for line in sys.stdin:
        command = json.loads(line)
        if "passed" in command:
            answer = proxies[command["passed"]].passed
        elif "close" in command:
            proxies.pop(command["close"]).close()
            answer = {}
        else:
            proxy = Proxy(**command)
            answer = {"id": proxy.port, "port": proxy.port}
            proxies[proxy.port] = proxy
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
