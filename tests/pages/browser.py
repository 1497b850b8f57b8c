"""Drives a headless Chromium over its debugging pipe; needs nothing but the browser."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from select import select
from typing import Any

BROWSER = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)
ABSENT = "NO BROWSER: pages were not opened. Run `make browser` (installs Debian's chromium)"

_FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--no-first-run", "--hide-scrollbars",
    "--disable-dev-shm-usage", "--remote-debugging-pipe",
]  # fmt: skip


# The debugging pipe is file descriptors 3 and 4 of the browser, whatever they were before.
_LAUNCHER = """
import fcntl, os, sys
ends = [fcntl.fcntl(int(end), fcntl.F_DUPFD, 10) for end in sys.argv[1:3]]
os.dup2(ends[0], 3)
os.dup2(ends[1], 4)
os.execv(sys.argv[3], sys.argv[3:])
"""


@dataclass
class Visit:
    """What happened while a page was open."""

    requests: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


class Browser:
    """One tab, spoken to in the DevTools protocol."""

    def __init__(self, commands: int, answers: int) -> None:
        self._commands, self._answers = commands, answers
        self._buffer = b""
        self._last = 0
        self._session: str | None = None
        self.visit = Visit()
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def open(self, url: str, width: int) -> Visit:
        """Open a page at a width in CSS pixels and wait until it has loaded."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=800,
                  deviceScaleFactor=1, mobile=width < 600)  # fmt: skip
        self.visit = Visit()
        self.call("Page.navigate", url=url)
        self._wait_for("Page.loadEventFired")
        self.evaluate("new Promise(done => setTimeout(done, 60))")
        return self.visit

    def use_paper(self, *, paper: bool) -> None:
        """Lay pages out as for a printer, or as for a screen again."""
        self.call("Emulation.setEmulatedMedia", media="print" if paper else "")

    def print_pages(self) -> bytes:
        """Return the page as a PDF."""
        return b64decode(self.call("Page.printToPDF")["data"])

    def evaluate(self, script: str) -> Any:
        """Run a script in the page and return its value."""
        answer = self.call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def screenshot(self, path: Path) -> None:
        """Save the whole page as a picture."""
        answer = self.call("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(b64decode(answer["data"]))

    def call(self, method: str, **params: Any) -> Any:
        self._last += 1
        message = {"id": self._last, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._last:
                assert "error" not in answer, answer
                return answer["result"]

    def _wait_for(self, event: str) -> None:
        while self._read().get("method") != event:
            pass

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select([self._answers], [], [], 60)
            assert ready, "the browser does not answer"
            chunk = os.read(self._answers, 1 << 20)
            assert chunk, "the browser has gone"
            self._buffer += chunk
        text, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        self._note(message.get("method"), message.get("params", {}))
        return message

    def _note(self, method: str | None, params: dict[str, Any]) -> None:
        if method == "Network.requestWillBeSent":
            self.visit.requests.append(params["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.visit.problems.append(str(params["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled" and params["type"] in {"error", "assert"}:
            self.visit.problems.append(str(params["args"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.visit.problems.append(params["entry"]["text"])


@contextmanager
def start_browser(profile: Path) -> Iterator[Browser]:
    """Start a browser with a fresh profile; it is stopped at the end."""
    assert BROWSER is not None, ABSENT
    to_read, commands = os.pipe()
    answers, to_write = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-c", _LAUNCHER, str(to_read), str(to_write), BROWSER, *_FLAGS,
         f"--user-data-dir={profile}"],
        pass_fds=(to_read, to_write), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    os.close(to_read)
    os.close(to_write)
    try:
        yield Browser(commands, answers)
    finally:
        process.terminate()
        process.wait(timeout=30)
        os.close(commands)
        os.close(answers)
