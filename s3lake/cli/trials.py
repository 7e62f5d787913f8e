"""The command that holds a configuration to what is expected of it: assertions over previews, for CI."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from s3lake.cli import rows
from s3lake.cli.options import (
    CONFIG,
    DialectOption,
    JsonOption,
    NameOption,
    ObservedOption,
    StrictOption,
    WorkerOption,
    beside,
)
from s3lake.cli.terminal import DIFFERENCES, out, print_json, say
from s3lake.config import load as configuration

if TYPE_CHECKING:
    from s3lake.land.preview.trial import Difference

_COLOURS = {"-": "red", "+": "green"}


def hold(
    config: Annotated[str, typer.Argument(metavar="CONFIG", help=CONFIG)],
    cases: Annotated[Path, typer.Argument(metavar="CASES", help="A YAML file: records, and what they have to become.")],
    dialect: DialectOption = None,
    name: NameOption = None,
    worker: WorkerOption = None,
    strict: StrictOption = False,
    observed: ObservedOption = False,
    update: Annotated[
        bool, typer.Option("--update", help="Write what there is into CASES, in the place of what was expected.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Hold a configuration to what is expected of it: records in, keys, rows and dead letters out.

    Without Kafka and without S3, for CI. The exit code is 1 where anything differs.
    """
    from s3lake.land.preview import trial
    from s3lake.land.preview.cases import read
    from s3lake.land.preview.updated import updated

    loaded = configuration.loaded(config, dialect, beside(name, worker, strict, observed), to_land=False)
    file = read(cases)
    # Without their places, which every line that is added to a file changes.
    texts = (": ".join(filter(None, (notice.place.key, notice.message))) for notice in loaded.notices)
    notices = [*texts, *rows.doubts(loaded.config)]
    outcomes = {case.name: trial.tried(case, loaded.config.sinks, loaded.config.spark) for case in file.cases}
    of_notices = None if file.notices is None else trial.of_notices(file.notices, notices)
    failed = 0 if of_notices is None else _tell(as_json, "the configuration", str(cases), [of_notices])
    for case in file.cases:
        failed += _tell(as_json, case.name, str(case.place), trial.differences(case.expect, outcomes[case.name]))
    if update:
        text = updated(cases, outcomes, notices)
        changed = text != cases.read_text(encoding="utf-8")
        if changed:
            cases.write_text(text, encoding="utf-8")
        say(as_json, f"{cases} is written" if changed else "nothing to update: all is as expected")
    elif failed:
        say(as_json, f"{failed} of {len(file.cases)} cases differ (- expected, + there); --update writes what is there")
        raise typer.Exit(DIFFERENCES)
    else:
        say(as_json, f"{len(file.cases)} cases, all as expected")


def _tell(as_json: bool, name: str, place: str, differences: Sequence["Difference"]) -> bool:
    """Tell what became of a case; whether it differs."""
    if as_json:
        parts = [{"what": each.what, "expected": each.expected, "present": each.present} for each in differences]
        print_json({"case": name, "place": place, "passed": not differences, "differences": parts})
        return bool(differences)
    out.print(f"differs: {name} ({place})" if differences else f"ok: {name}", markup=False)
    for difference in differences:
        out.print(f"  {difference.what}:", markup=False)
        for line in difference.lines():
            out.print(Text(f"    {line}", style=_COLOURS.get(line[0], "")))
    return bool(differences)
