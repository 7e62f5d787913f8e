"""What a CycloneDX document of a whole environment says of all that s3lake depends on.

cyclonedx-py environment ... | python release/sbom.py > sbom.json
"""

import json
import re
import sys
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

try:
    import tomllib
except ImportError:  # Python 3.10
    import tomli as tomllib


def needed(requirements: Iterable[str]) -> set[str]:
    """Names of the distributions that requirements lead to here, by extras that they ask for too."""
    seen: set[tuple[str, str]] = set()
    waiting = [(Requirement(text), "") for text in requirements]
    while waiting:
        wanted, extra = waiting.pop()
        if wanted.marker is not None and not wanted.marker.evaluate({"extra": extra}):
            continue
        for asked in {(_plain(wanted.name), one) for one in ("", *wanted.extras)} - seen:
            seen.add(asked)
            waiting += [(Requirement(text), asked[1]) for text in metadata.requires(asked[0]) or ()]
    return {name for name, _ in seen}


def kept(document: dict[str, Any], names: set[str]) -> dict[str, Any]:
    """The document without components that nobody needs."""
    components = [one for one in document["components"] if _plain(one["name"]) in names]
    refs = {one["bom-ref"] for one in components} | {document["metadata"]["component"]["bom-ref"]}
    depends = [
        {**one, "dependsOn": [ref for ref in one.get("dependsOn", ()) if ref in refs]}
        for one in document["dependencies"]
        if one["ref"] in refs
    ]
    return {**document, "components": components, "dependencies": depends}


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


if __name__ == "__main__":
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    json.dump(kept(json.load(sys.stdin), needed(project["dependencies"])), sys.stdout, indent=2)
