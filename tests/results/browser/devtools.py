"""A headless Chromium, driven over the DevTools protocol: JSON messages ended by NUL, on the browser's file
descriptors 3 (to it) and 4 (from it). https://chromedevtools.github.io/devtools-protocol/"""

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome", "chrome")


def find_chromium():
    """The path of a Chromium, $PLUMB_CHROMIUM before others; None where there is none."""
    return next(filter(None, map(shutil.which, (os.environ.get("PLUMB_CHROMIUM", ""), *NAMES))), None)


class Failed(Exception):
    """The browser refused a command, answered nothing or has gone."""


class Browser:
    """One browser with an empty profile; a context manager, at whose end it and its profile go."""

    def __init__(self, program, timeout_seconds=60):
        self._timeout_seconds = timeout_seconds
        self._profile = tempfile.mkdtemp(prefix="plumb_browser_")
        self._buffer = b""
        self._last_id = 0
        self._events = []
        to_browser, self._out = os.pipe()
        self._in, from_browser = os.pipe()
        self._log = open(os.path.join(self._profile, "log.txt"), "wb")
        # The shell moves the pipes to descriptors 3 and 4, whatever their numbers are here.
        command = ["sh", "-c", f'exec "$@" 3<&{to_browser} 4>&{from_browser}', "sh", program, "--headless=new",
                   "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                   "--disable-extensions", "--disable-background-networking", "--disable-sync", "--no-first-run",
                   "--no-default-browser-check", "--hide-scrollbars", "--force-color-profile=srgb",
                   f"--user-data-dir={self._profile}", "about:blank"]
        self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log,
                                         pass_fds=(to_browser, from_browser))
        os.close(to_browser)
        os.close(from_browser)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.send("Browser.close")
            self._process.wait(timeout=10)
        except (Failed, OSError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        os.close(self._out)
        os.close(self._in)
        self._log.close()
        shutil.rmtree(self._profile, ignore_errors=True)

    def send(self, method, session=None, **parameters):
        """Sends a command and returns its result; events that come meanwhile are kept."""
        self._last_id += 1
        message = {"id": self._last_id, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        self._write(json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + self._timeout_seconds
        while True:
            answer = self._receive(deadline)
            if answer is None:
                raise Failed(f"no answer to {method} within {self._timeout_seconds} s")
            if answer.get("id") == self._last_id:
                if "error" in answer:
                    raise Failed(f"{method}: {answer['error'].get('message')}")
                return answer["result"]
            self._events.append(answer)

    def wait_for(self, method, session):
        """The first event of that name, kept ones before new ones."""
        deadline = time.monotonic() + self._timeout_seconds
        while True:
            for event in self._events:
                if event.get("method") == method and event.get("sessionId") == session:
                    self._events.remove(event)
                    return event["params"]
            event = self._receive(deadline)
            if event is None:
                raise Failed(f"no {method} within {self._timeout_seconds} s")
            self._events.append(event)

    def events(self, method, session):
        """What every event of that name, so far, said."""
        return [e["params"] for e in self._events if e.get("method") == method and e.get("sessionId") == session]

    def _write(self, data):
        while data:
            data = data[os.write(self._out, data):]

    def _receive(self, deadline):
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._in], [], [], max(0, deadline - time.monotonic()))
            if not ready:
                return None
            chunk = os.read(self._in, 1 << 16)
            if not chunk:
                self._log.flush()
                with open(self._log.name, errors="replace") as log:
                    raise Failed("the browser has ended: " + log.read()[-500:])
            self._buffer += chunk
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)


class Page:
    """One tab. Console messages, exceptions and requests are recorded from before its first byte is loaded."""

    def __init__(self, browser, width=1400, height=900):
        self.browser = browser
        target = browser.send("Target.createTarget", url="about:blank")["targetId"]
        self._target = target
        self.session = browser.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(domain + ".enable")
        self.resize(width, height)
        self.emulate()

    def send(self, method, **parameters):
        return self.browser.send(method, self.session, **parameters)

    def close(self):
        self.browser.send("Target.closeTarget", targetId=self._target)

    def resize(self, width, height):
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                  mobile=False)

    def emulate(self, medium=""):
        features = [{"name": "prefers-reduced-motion", "value": "reduce"}]
        self.send("Emulation.setEmulatedMedia", media=medium, features=features)

    def open(self, path):
        """Loads a file and waits for its load event."""
        answer = self.send("Page.navigate", url="file://" + os.path.abspath(path))
        if answer.get("errorText"):
            raise Failed(f"{path}: {answer['errorText']}")
        self.browser.wait_for("Page.loadEventFired", self.session)

    def evaluate(self, expression):
        """The value of a JavaScript expression, as if the reader's hand had set it off; a promise is waited for."""
        answer = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True,
                           userGesture=True)
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            raise Failed(details.get("exception", {}).get("description", details["text"]))
        return answer["result"].get("value")

    def settle(self):
        """Waits until what has been changed is laid out and painted."""
        self.evaluate("new Promise((done) => setTimeout(() => requestAnimationFrame(() => setTimeout(done)), 100))")

    def press(self, key, shift=False):
        """A key as typed: "Tab", "Enter", "Escape", " ", "ArrowDown"."""
        code = {"Tab": 9, "Enter": 13, "Escape": 27, " ": 32, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39,
                "ArrowDown": 40, "Home": 36, "End": 35}[key]
        text = {"Enter": "\r", " ": " "}.get(key, "")
        common = {"key": key, "code": {" ": "Space"}.get(key, key), "windowsVirtualKeyCode": code,
                  "modifiers": 8 if shift else 0}
        self.send("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", text=text, **common)
        self.send("Input.dispatchKeyEvent", type="keyUp", **common)

    def complaints(self):
        """Errors and warnings of console, page and browser, as text."""
        said = []
        for event in self.browser.events("Runtime.consoleAPICalled", self.session):
            if event["type"] in ("error", "warning", "assert"):
                said.append(" ".join(str(a.get("value", a.get("description"))) for a in event["args"]))
        for event in self.browser.events("Runtime.exceptionThrown", self.session):
            details = event["exceptionDetails"]
            said.append(details.get("exception", {}).get("description", details["text"]))
        for event in self.browser.events("Log.entryAdded", self.session):
            if event["entry"]["level"] in ("error", "warning"):
                said.append(event["entry"]["text"] + " " + event["entry"].get("url", ""))
        return said

    def requests(self):
        """Addresses of everything that was asked for, the page itself included."""
        return [e["request"]["url"] for e in self.browser.events("Network.requestWillBeSent", self.session)]

    def allow_downloads(self, folder):
        """Files that the page hands out go to this folder, under names of the browser's."""
        self._downloads = folder
        self.browser.send("Browser.setDownloadBehavior", behavior="allowAndName", downloadPath=folder,
                          eventsEnabled=True)

    def downloaded(self):
        """The path of the file that the page hands out next."""
        while True:
            state = self.browser.wait_for("Browser.downloadProgress", None)
            if state["state"] == "completed":
                return os.path.join(self._downloads, state["guid"])
            if state["state"] == "canceled":
                raise Failed("a download was canceled")

    def screenshot(self, path, whole=True, clip=None):
        """clip: {x, y, width, height} in pixels of the page; default: all of it."""
        part = {"clip": {**clip, "scale": 1}} if clip else {}
        picture = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=whole, **part)
        with open(path, "wb") as file:
            file.write(base64.b64decode(picture["data"]))
