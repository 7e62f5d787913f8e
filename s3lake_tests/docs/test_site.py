"""The site of docs/ is built without network, whole, and fetches nothing from elsewhere when it is read."""

import os
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit
from xml.etree import ElementTree

import pytest

pytestmark = [pytest.mark.slow("builds the site, which `make docs` and test_links.py check too"), pytest.mark.long]

ROOT = Path(__file__).parents[2]


class Page(HTMLParser):
    """Where a page's links lead, what it loads, and the names of its places."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self.links: list[str] = []
        self.loads: list[str] = []
        self.places: set[str] = set()
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value for name, value in attrs if value}
        if "id" in values:
            self.places.add(values["id"])
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        if tag in ("img", "script", "iframe", "source") and "src" in values:
            self.loads.append(values["src"])
        if tag == "link" and values.get("rel") in ("stylesheet", "icon", "preconnect", "preload"):
            self.loads.append(values["href"])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, Page]:
    """The pages as `make docs` builds them, where nothing answers beside this machine."""
    target = tmp_path_factory.mktemp("site")
    away = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), "http://127.0.0.1:1")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(target)],
        cwd=ROOT,
        env={**os.environ, **away, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    return {path.relative_to(target): Page(path) for path in target.rglob("*.html")}


def inside(links: list[str]) -> list[str]:
    return [link for link in links if not urlsplit(link).scheme and not urlsplit(link).netloc]


def test_every_page_of_the_site_can_be_reached_and_every_link_leads_to_a_place(site: dict[Path, Page]) -> None:
    missing = []
    for path, page in site.items():
        if path == Path("404.html"):  # its links begin at the address that somebody mistook
            continue
        for link in inside(page.links):
            file, _, place = unquote(link).partition("#")
            target = Path(os.path.normpath(path.parent / file)) if file else path
            if target.suffix == ".html" and (target not in site or (place and place not in site[target].places)):
                missing.append(f"{path}: {link}")
    assert missing == []


def test_every_picture_is_there_and_can_be_drawn(site: dict[Path, Page]) -> None:
    pictures = {
        page.path.parent / unquote(load)
        for path, page in site.items()
        for load in inside(page.loads)
        if load.endswith((".svg", ".png")) and path != Path("404.html")
    }
    assert len(pictures) >= 6
    for picture in pictures:
        if picture.suffix == ".svg":
            assert ElementTree.parse(picture).getroot().tag == "{http://www.w3.org/2000/svg}svg"
        else:
            assert picture.read_bytes().startswith(b"\x89PNG")


def test_no_page_loads_anything_from_elsewhere(site: dict[Path, Page]) -> None:
    assert {load for page in site.values() for load in page.loads if load not in inside(page.loads)} == set()
