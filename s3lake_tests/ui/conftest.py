"""A browser on the UI, and pictures of what it shows: `make pictures` takes the pictures of the docs."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, FloatRect, Page, expect, sync_playwright

from s3lake_tests.ui.site import Site, start_site

_PATIENCE_MS = 300_000
"""For what a page shows once it is loaded; an idle machine takes a tenth of a second."""
_SETTLED_MS = 1_500
"""Until nothing of a picture moves."""
_WIDTH = 1440
_LEAST_HEIGHT = 760
"""Of a window whose navigation does not overlap."""

Picture = Callable[[str, int], None]


@pytest.fixture(scope="module")
def site(jvm: Path) -> Iterator[Site]:  # noqa: ARG001 (it needs Java)
    """The UI, for all tests of a module."""
    with start_site() as served:
        yield served


@pytest.fixture(scope="module")
def browser(chromium: str) -> Iterator[Browser]:
    """The machine's Chromium, without a window."""
    expect.set_options(timeout=_PATIENCE_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def page(browser: Browser, site: Site) -> Iterator[Page]:
    """A page of the UI that speaks English and UTC."""
    with opened(browser, site) as page:
        yield page


@pytest.fixture
def picture(page: Page, request: pytest.FixtureRequest) -> Picture:
    """Takes a picture of the page under a name, so many pixels high, into the directory of `--pictures`."""
    directory: Path | None = request.config.getoption("--pictures")

    def take(name: str, height: int) -> None:
        if directory is not None:
            page.set_viewport_size({"width": _WIDTH, "height": max(height, _LEAST_HEIGHT)})
            page.mouse.move(0, 0)
            expect(page.get_by_text("Loading")).to_have_count(0)
            page.wait_for_timeout(_SETTLED_MS)
            clip: FloatRect = {"x": 0, "y": 0, "width": _WIDTH, "height": height}
            page.screenshot(path=directory / f"{name}.png", clip=clip)

    return take


def opened(browser: Browser, site: Site) -> Page:
    """A new page, at home."""
    page = browser.new_page(
        base_url=site.url, locale="en-US", timezone_id="UTC", viewport={"width": _WIDTH, "height": 900}
    )
    page.set_default_timeout(_PATIENCE_MS)
    return page
