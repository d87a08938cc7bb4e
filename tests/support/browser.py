"""A page in Chromium: its requests, its messages, what it shows, and what a screen reader gets."""

from __future__ import annotations

import base64
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from selenium import webdriver
from selenium.webdriver.chrome.service import Service

BROWSERS: Final = ("chromium", "google-chrome", "chromium-browser")
"""Names of the program: on Debian, and on other systems."""
_OPTIONS: Final = (
    *("headless", "no-sandbox", "disable-gpu", "disable-quic", "no-first-run", "disable-background-networking"),
    *("disable-component-update", "disable-sync", "disable-dev-shm-usage"),
)


def program() -> str | None:
    """The path of the browser; None if none is installed."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)


def missing() -> list[str]:
    """The programs that aren't installed."""
    lacking = [] if program() else ["chromium"]
    return lacking if shutil.which("chromedriver") else [*lacking, "chromedriver"]


class Browser:
    """A browser with one page."""

    def __init__(self, driver: webdriver.Chrome) -> None:
        self.driver = driver

    def show(
        self, page: Path, *, dark: bool = False, width: int = 1100, medium: str = "screen", greyscale: bool = False
    ) -> None:
        """Open a page, and forget what was logged before."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._command("Emulation.setEmulatedMedia", media=medium, features=[scheme])
        self._command("Emulation.setEmulatedVisionDeficiency", type="achromatopsia" if greyscale else "none")
        self._command(
            "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False
        )
        self.driver.get("about:blank")
        self.messages(), self.requests()
        self.driver.get(page.resolve().as_uri())

    def messages(self) -> list[str]:
        """The messages of the console."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self) -> list[str]:
        """The addresses that the browser requested."""
        events = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        return [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]

    def run(self, script: str, *arguments: object) -> Any:
        """Run a script and return its value."""
        return self.driver.execute_script(script, *arguments)

    def press(self, key: str, *, code: int) -> None:
        """Press a key, as a user does."""
        named = {"key": key, "windowsVirtualKeyCode": code, **({"text": "\r"} if key == "Enter" else {})}
        for kind in ("keyDown", "keyUp"):
            self._command("Input.dispatchKeyEvent", type=kind, **named)

    def tree(self) -> list[dict[str, Any]]:
        """What a screen reader gets: role, name, description and properties of each node that isn't ignored."""
        nodes = self._command("Accessibility.getFullAXTree")["nodes"]
        return [
            {
                "role": node["role"]["value"],
                "name": node.get("name", {}).get("value", ""),
                "description": node.get("description", {}).get("value", ""),
                **{p["name"]: p["value"].get("value") for p in node.get("properties", [])},
            }
            for node in nodes
            if not node["ignored"]
        ]

    def picture(self, path: Path, height: int = 6000) -> None:
        """Write a picture of the page, from its top."""
        size = self.run("return [document.documentElement.clientWidth, document.documentElement.scrollHeight]")
        clip = {"x": 0, "y": 0, "width": size[0], "height": min(size[1], height), "scale": 1}
        found = self._command("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
        path.write_bytes(base64.b64decode(found["data"]))

    def printed(self) -> bytes:
        """The page as PDF."""
        return base64.b64decode(self._command("Page.printToPDF")["data"])

    def _command(self, name: str, **arguments: object) -> Any:
        return self.driver.execute_cdp_cmd(name, arguments)


@contextmanager
def browser(profile: Path) -> Iterator[Browser]:
    """Chromium without a window, with a new profile, and without background requests."""
    options = webdriver.ChromeOptions()
    options.binary_location = program() or ""
    for option in (*_OPTIONS, f"user-data-dir={profile}"):
        options.add_argument(f"--{option}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    try:
        yield Browser(driver)
    finally:
        driver.quit()
