"""The documents of the repository, and the links in them."""

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted(
    path
    for pattern in ("*.md", "benchmarks/*.md", "docker/*.md", "release/*.md", "trials/*.md", "docs/**/*.md")
    for path in ROOT.glob(pattern)
)
FENCED = re.compile(r"^(```+|~~~+).*?^\1", re.DOTALL | re.MULTILINE)
_CODE = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)")
_LINK = re.compile(r"\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)")
_HTML = re.compile(r"(?:href|src)=\"([^\"]+)\"")


def find_links(document: Path) -> Iterator[str]:
    """Where a document's links lead, those to other hosts left out."""
    text = _CODE.sub("", FENCED.sub("", document.read_text("utf-8")))
    for found in [*_LINK.findall(text), *_HTML.findall(text)]:
        if not re.match(r"[a-z][a-z+.-]*:", found):
            yield unquote(found)
