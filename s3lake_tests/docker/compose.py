"""docker/compose.yaml as Compose reads it, and its command lines as the programs in it parse them."""

import pkgutil
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from s3lake import cli

ROOT = Path(__file__).parents[2]
DOCKER = ROOT / "docker"
PROGRAMS = {
    "dagster": "dagster._cli:create_dagster_cli",
    "dagster-daemon": "dagster._daemon.cli:create_dagster_daemon_cli",
    "dagster-webserver": "dagster_webserver.cli:create_dagster_webserver_cli",
}
"""What makes Dagster's programs of our image; imported when a test asks, for the web server takes a second."""


def find_program(name: str) -> Any:
    """A program whose arguments can be parsed here without running it."""
    return cli.program() if name == "s3lake" else pkgutil.resolve_name(PROGRAMS[name])()


def read_dotenv(path: Path) -> dict[str, str]:
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
    return dict(line.split("=", 1) for line in lines)


def interpolate(text: str, variables: Mapping[str, str]) -> str:
    """`text` with Compose's `${NAME}`, `${NAME:-default}` and `${NAME:?message}` filled in."""

    def value(found: re.Match[str]) -> str:
        given = variables.get(found["name"], "")
        if not given and found["operator"] != ":-":
            raise KeyError(found["name"])
        return given or found["argument"]

    return re.sub(r"\$\{(?P<name>\w+)(?:(?P<operator>:[-?])(?P<argument>[^}]*))?\}", value, text)


def load_compose() -> dict[str, Any]:
    text = (DOCKER / "compose.yaml").read_text(encoding="utf-8")
    return yaml.safe_load(interpolate(text, read_dotenv(DOCKER / ".env.example")))


COMPOSE = load_compose()
SERVICES: Mapping[str, Mapping[str, Any]] = COMPOSE["services"]
OURS = [name for name, service in SERVICES.items() if service["image"] == "s3lake"]


def find_mounted_files(service: str) -> dict[str, str]:
    """Return paths in the container, and the files here that are mounted there."""
    configs = SERVICES[service].get("configs", ())
    return {config["target"]: str(DOCKER / COMPOSE["configs"][config["source"]]["file"]) for config in configs}


def parse_command(argv: Sequence[str]) -> dict[str, Any]:
    """The options of a command line, as the program itself understands it."""
    command, rest, parent = find_program(argv[0]), list(argv[1:]), None
    while hasattr(command, "get_command"):  # Typer's groups are of a click of its own
        parent = command.context_class(command, parent)
        found = command.get_command(parent, rest[0])
        assert found is not None, f"{argv[0]} has no command {rest[0]}"
        command, rest = found, rest[1:]
    return command.make_context(argv[0], rest, parent).params
