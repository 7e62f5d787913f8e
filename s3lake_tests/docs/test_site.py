"""The site of docs/ is built without network, and fetches nothing from elsewhere when it is read."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from s3lake_tests.docs.test_links import ROOT

LOADS = re.compile(r'<(?:img|script|iframe|source)\b[^>]*\ssrc="([^"]+)"|<link\b[^>]*\srel="stylesheet"[^>]*>')


@pytest.mark.slow("builds the site, which `make docs` and test_links.py check too")
@pytest.mark.long
def test_no_page_loads_anything_from_elsewhere(tmp_path: Path) -> None:
    away = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), "http://127.0.0.1:1")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, **away, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    loads = [load[0] for path in tmp_path.rglob("*.html") for load in LOADS.finditer(path.read_text("utf-8"))]
    assert loads
    assert [load for load in loads if re.search(r'(src|href)="(https?:)?//', load)] == []
