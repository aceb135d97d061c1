"""Drives Debian's Chromium over its debugging pipe: what a page is, asks for and complains about, without a driver."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

__all__ = ["Page", "chromium", "open_page"]


def chromium() -> str | None:
    """Return where a Chromium is, or None."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


class Page:
    """A page in a browser, and what has happened since it was opened."""

    def __init__(self, write: int, read: int) -> None:
        self._write, self._read = write, read
        self._rest, self._last, self._session = b"", 0, ""
        self.events: list[dict[str, Any]] = []

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a command of the DevTools protocol and return its result."""
        self._last += 1
        message: dict[str, Any] = {"id": self._last, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._last:
                assert "error" not in answer, answer
                return dict(answer["result"])
            self.events.append(answer)

    def attach(self) -> None:
        """Open an empty page and watch it."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def go(self, url: str) -> None:
        """Load an address and wait until it is loaded."""
        # From elsewhere, since another fragment of the same page loads nothing.
        for address in ("about:blank", url):
            self.events.clear()
            self.call("Page.navigate", url=address)
            while not self._seen("Page.loadEventFired"):
                self.events.append(self._receive())

    def evaluate(self, expression: str) -> Any:
        """Return the value of an expression of JavaScript."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def prefer(self, **features: str) -> None:
        """Emulate media features, as ``prefers_color_scheme="dark"``."""
        self.call(
            "Emulation.setEmulatedMedia",
            features=[{"name": name.replace("_", "-"), "value": value} for name, value in features.items()],
        )

    def resize(self, width: int, height: int = 900) -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def screenshot(self, path: Path) -> None:
        """Write the whole page as a PNG."""
        shot = self.call("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(shot["data"]))

    @property
    def requests(self) -> list[str]:
        """What was asked for since the page was opened."""
        return [event["params"]["request"]["url"] for event in self._named("Network.requestWillBeSent")]

    @property
    def complaints(self) -> list[str]:
        """What stands in the console since the page was opened: errors, warnings, exceptions."""
        return [
            json.dumps(event["params"])
            for name in ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded")
            for event in self._named(name)
        ]

    def _named(self, method: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event.get("method") == method]

    def _seen(self, method: str) -> bool:
        return bool(self._named(method))

    def _receive(self) -> dict[str, Any]:
        until = time.monotonic() + 60
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._read], [], [], max(0, until - time.monotonic()))
            assert ready, "the browser has not answered for a minute"
            more = os.read(self._read, 1 << 20)
            assert more, "the browser is gone"
            self._rest += more
        message, _, self._rest = self._rest.partition(b"\0")
        answer: dict[str, Any] = json.loads(message)
        return answer


@contextmanager
def open_page(profile: Path, environment: Mapping[str, str] | None = None) -> Iterator[Page]:
    """Start a browser with a profile of its own, and stop it afterwards."""
    program = chromium()
    assert program is not None
    to_browser, from_us = os.pipe()
    from_browser, to_us = os.pipe()

    def take_over() -> None:  # Chromium reads commands from 3 and answers on 4
        moved = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (to_browser, to_us)]
        for end, wanted in zip(moved, (3, 4), strict=True):
            os.dup2(end, wanted)

    browser = subprocess.Popen(
        [
            program,
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-background-networking",
            "--no-first-run",
            "--remote-debugging-pipe",
            f"--user-data-dir={profile}",
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **(environment or {})},
        close_fds=False,
        preexec_fn=take_over,
    )
    os.close(to_browser)
    os.close(to_us)
    page = Page(from_us, from_browser)
    try:
        page.attach()
        yield page
    finally:
        browser.terminate()
        browser.wait(30)
        os.close(from_us)
        os.close(from_browser)
