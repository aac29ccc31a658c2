# SPDX-License-Identifier: Apache-2.0
"""A page in Chromium without a window: asked, clicked and photographed over the browser's own pipe."""

import base64
import json
import os
import shutil
import subprocess

NAMES = ("chromium", "chromium-browser", "google-chrome")


def program():
    return next((found for found in map(shutil.which, NAMES) if found), None)


class Page:
    """``with Page(address, width, dark) as page``; errors of the page's script are collected in `errors`."""

    def __init__(self, address, folder, width=1200, height=900, dark=False):
        self.address, self.size, self.dark, self.errors = address, (width, height), dark, []
        to_browser, self._write = os.pipe()
        self._read, from_browser = os.pipe()

        def descriptors():
            a, b = os.dup(to_browser), os.dup(from_browser)
            os.dup2(a, 3)
            os.dup2(b, 4)

        self._process = subprocess.Popen(
            [
                program(), "--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--no-first-run",
                f"--user-data-dir={folder}", "about:blank",
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=descriptors,  # noqa: PLW1509 (one thread)
            pass_fds=(3, 4),
        )  # fmt: skip
        os.close(to_browser)
        os.close(from_browser)
        self._said, self._number, self._session = b"", 0, None

    def __enter__(self):
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"
        ]
        for name in ("Page.enable", "Runtime.enable", "Log.enable"):
            self._call(name)
        width, height = self.size
        self._call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=width < 600,
        )  # fmt: skip
        scheme = {"name": "prefers-color-scheme", "value": "dark" if self.dark else "light"}
        self._call("Emulation.setEmulatedMedia", features=[scheme])
        self._call("Page.navigate", url=self.address)
        self._until("Page.loadEventFired")
        return self

    def __exit__(self, *exception):
        self._process.kill()
        self._process.wait()
        os.close(self._write)
        os.close(self._read)

    def _message(self):
        while b"\0" not in self._said:
            part = os.read(self._read, 1 << 16)
            if not part:
                raise RuntimeError("Chromium has ended")
            self._said += part
        text, _, self._said = self._said.partition(b"\0")
        message = json.loads(text)
        if message.get("method") == "Runtime.exceptionThrown":
            self.errors.append(message["params"]["exceptionDetails"]["text"])
        elif (
            message.get("method") == "Log.entryAdded"
            and message["params"]["entry"]["level"] == "error"
        ):
            self.errors.append(message["params"]["entry"]["text"])
        return message

    def _until(self, event):
        while self._message().get("method") != event:
            pass

    def _call(self, method, **parameters):
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            reply = self._message()
            if reply.get("id") == self._number:
                if "error" in reply:
                    raise RuntimeError(f"{method}: {reply['error']['message']}")
                return reply["result"]

    def ask(self, script):
        """The value of an expression of the page."""
        done = self._call("Runtime.evaluate", expression=script, returnByValue=True)
        if "exceptionDetails" in done:
            raise RuntimeError(done["exceptionDetails"]["exception"].get("description", script))
        return done["result"].get("value")

    def click(self, selector):
        """A click of the mouse into the middle of an element, scrolled into view."""
        x, y = self.ask(
            f"(()=>{{const e=document.querySelector({json.dumps(selector)});e.scrollIntoView({{block:'center'}});"
            "const r=e.getBoundingClientRect();return [r.x+r.width/2,r.y+r.height/2]})()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self._call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def key(self, name):
        for kind in ("keyDown", "keyUp"):
            self._call("Input.dispatchKeyEvent", type=kind, key=name, code=name)

    def focus(self):
        """The page behaves as the window in front: what the keyboard writes reaches it."""
        self._call("Emulation.setFocusEmulationEnabled", enabled=True)

    def write(self, text):
        """Text from the keyboard, into the element that has the focus."""
        self._call("Input.insertText", text=text)
        self.key("Shift")

    def picture(self, path):
        """The whole page as a PNG file."""
        size = self._call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        data = self._call("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)["data"]
        path.write_bytes(base64.b64decode(data))
