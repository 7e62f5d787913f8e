"""Files that the pages call ours: settings of Dagster, versions, alerts, the stack. The wheel has them."""

import re
from pathlib import Path
from typing import Annotated

import typer

from s3lake.cli.output import emit, print_text
from s3lake.cli.request import Request
from s3lake.errors import ConfigurationError

_IN_WHEEL = Path(__file__).parent / "shipped"
_CLONE = Path(__file__).parents[2]
FILES = {
    "dagster.yaml": ("dagster.yaml", "settings of a Dagster instance on one machine, for DAGSTER_HOME"),
    "constraints.txt": ("constraints.txt", "exact versions that are tested together, for pip install -c"),
    "alerts.yml": ("docker/prometheus/alerts.yml", "alerts for Prometheus"),
    "dashboard.json": ("docker/grafana/dashboard.json", "a dashboard for Grafana"),
    "compose.yaml": ("docker/compose.yaml", "the whole stack; it is started in a clone of s3lake"),
    "Dockerfile": ("docker/Dockerfile", "the image of the stack; it is built in a clone of s3lake"),
}
"""By name: the path in the repository, and what it is. `hatch_build.py` puts them into the wheel."""
_ONLY_IN_A_CLONE = re.compile(
    rb"^# Only in a clone.*?^# The end of what is only in a clone\.\n\n?", re.MULTILINE | re.DOTALL
)


def run_files(
    request: Request,
    names: Annotated[list[str] | None, typer.Argument(metavar="NAME", help="Files to write; none to list all.")] = None,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Write into this directory.")] = Path(),
) -> None:
    """List the files that come with s3lake (settings of Dagster, tested versions, alerts, the stack), or write some."""
    unknown = [name for name in names or () if name not in FILES]
    if unknown:
        raise ConfigurationError(f"{', '.join(unknown)}: unknown file; there are {', '.join(FILES)}")
    taken = [str(out / name) for name in names or () if (out / name).exists()]
    if taken:
        raise ConfigurationError(f"{', '.join(taken)} exists already: give another --out, or move it away")
    if not names:
        for name, (_, what) in FILES.items():
            emit(request.as_json, {"name": name, "what": what}, "{name}: {what}".format_map)
        print_text(request.as_json, "next: s3lake files NAME writes one into this directory, or into --out DIR")
    for name in names or ():
        body = _ONLY_IN_A_CLONE.sub(b"", _find(name).read_bytes())
        try:
            out.mkdir(parents=True, exist_ok=True)
            (out / name).write_bytes(body)
        except OSError as error:
            raise ConfigurationError(f"--out {out}: {name} cannot be written: {error.strerror}") from None
        emit(request.as_json, {"written": str(out / name)}, "{written} is written".format_map)


def _find(name: str) -> Path:
    path = next((path for path in (_IN_WHEEL / name, _CLONE / FILES[name][0]) if path.is_file()), None)
    if path is None:
        raise ConfigurationError(f"this installation of s3lake lacks {name}: it was built from a part of a clone")
    return path
