"""Drives a browser: Chromium without a window, by its driver. `./scripts/browser` installs both."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from selenium.common.exceptions import WebDriverException
from selenium.webdriver import Chrome
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service

__all__ = ["Page", "opened"]

_SECONDS = 60.0
"""A machine with much else to do is slow: what takes longer than this has failed."""

_OPTIONS = (
    "--headless=new",
    "--no-sandbox",  # tests run as root in CI
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--window-size=1280,860",
    "--hide-scrollbars",
    "--no-proxy-server",
    "--disable-background-networking",
)


class Page:
    """A page in a browser."""

    def __init__(self, driver: Chrome) -> None:
        self.driver = driver

    def go(self, view: str) -> None:
        """Show a view."""
        self.driver.execute_script("location.hash = arguments[0]", f"/{view}")

    def run(self, script: str, *arguments: object) -> object:
        """Return what a script returns."""
        value: object = self.driver.execute_script(script, *arguments)
        return value

    def text(self, css: str) -> str:
        """Return the text of all that a selector names; a line for each."""
        return str(self.run(
            "return [...document.querySelectorAll(arguments[0])].map((e) => e.textContent).join('\\n')", css
        ))  # fmt: skip

    def texts(self, css: str) -> list[str]:
        """Return the texts of all that a selector names."""
        text = self.text(css)
        return text.split("\n") if text else []

    def click(self, css: str) -> None:
        """Click the first that a selector names."""
        self.until(lambda: self.run("return document.querySelector(arguments[0]) !== null", css))
        self.run(
            "document.querySelector(arguments[0]).dispatchEvent(new MouseEvent('click', {bubbles: true}))",
            css,
        )

    def write(self, css: str, text: str) -> None:
        """Write a text into a field."""
        self.run(
            "const e = document.querySelector(arguments[0]); e.value = arguments[1];"
            "e.dispatchEvent(new Event('input', {bubbles: true}))",
            css,
            text,
        )

    def until(self, holds: Callable[[], object], seconds: float = _SECONDS) -> None:
        """Wait until something holds."""
        end = time.monotonic() + seconds
        while not holds():
            assert time.monotonic() < end, self.text("main")[:2000]
            time.sleep(0.03)

    def shows(self, css: str, *words: str) -> None:
        """Wait until the words stand in what a selector names."""
        self.until(lambda: all(word in self.text(css) for word in words))

    def errors(self) -> list[str]:
        """Return what the browser has complained of since the last call."""
        return [str(entry["message"]) for entry in self.driver.get_log("browser")]  # type: ignore[no-untyped-call]

    def picture(self, path: Path) -> None:
        """Write what is to be seen as a PNG."""
        assert self.driver.save_screenshot(str(path))


@contextmanager
def opened(*options: str) -> Iterator[Page]:
    """Open a browser."""
    chosen = Options()
    for option in (*_OPTIONS, *options):
        chosen.add_argument(option)
    chosen.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    binary, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if binary is not None:
        chosen.binary_location = binary
    try:
        made = Chrome(chosen, Service(driver))
    except WebDriverException as error:
        pytest.fail(
            f"the tests of the page need Chromium and its driver: ./scripts/browser as root. {error.msg}"
        )
    try:
        yield Page(made)
    finally:
        made.quit()
