"""Pages of the site that are elsewhere in the repository, next to what they are about."""

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
MOUNTED = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "LICENSE": "LICENSE.txt",
    "benchmarks/README.md": "benchmarks.md",
    "benchmarks/limits.md": "limits.md",
    "dagster.yaml": "dagster.yaml",
    "docker/README.md": "docker.md",
    "docker/compose.yaml": "docker/compose.yaml",
    "docker/grafana/dashboard.json": "docker/dashboard.json",
    "docker/prometheus/alerts.yml": "docker/alerts.yml",
    "docker/s3lake.yaml": "docker/s3lake.yaml",
    "release/README.md": "release.md",
    "trials/README.md": "trials.md",
}
"""Path in the repository: path in the site."""
_SOURCES = {uri: path for path, uri in MOUNTED.items()}
_LINK = re.compile(r"\[(?P<text>[^\]]*)\]\((?P<path>[^)#\s:]+)(?P<anchor>#[^)\s]*)?\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add them to the files of docs/."""
    for path, uri in MOUNTED.items():
        files.append(File.generated(config, uri, abs_src_path=str(ROOT / path)))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Let links lead to the pages of the site. Code is not a page, so a link to it becomes its text."""
    here = page.file.src_uri
    directory = posixpath.dirname(_SOURCES.get(here, f"docs/{here}"))

    def moved(link: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(directory, link["path"]))
        if (ROOT / path / "README.md").is_file():
            path += "/README.md"
        if path.startswith(("s3lake/", "s3lake_tests/")) and (ROOT / path).is_file():
            return link["text"]
        uri = MOUNTED.get(path, path.removeprefix("docs/") if path.startswith("docs/") else None)
        if uri is None:
            return link[0]
        return f"[{link['text']}]({posixpath.relpath(uri, posixpath.dirname(here) or '.')}{link['anchor'] or ''})"

    return _LINK.sub(moved, markdown)
