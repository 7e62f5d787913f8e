"""The command line. Exit codes: 0 fine, 1 differences found, 2 configuration or input, 3 failed while running."""

import functools
import traceback
from importlib import metadata
from typing import Annotated, Any, NoReturn

import typer

from s3lake.cli import (
    adoption,
    change,
    configuration,
    ddl,
    dead_letters,
    demo,
    iam,
    index,
    init,
    landed,
    metrics,
    schema,
    spark,
    table,
    trials,
    verify,
)
from s3lake.cli.terminal import FAILED, INPUT, fail
from s3lake.errors import ConfigurationError, IncompleteError, S3LakeError

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"s3lake {metadata.version('s3lake')}")
        raise typer.Exit


@app.callback(help=__doc__)
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version, and end.")
    ] = False,
) -> None:
    pass


for command in (
    demo.demo,
    init.init,
    configuration.check,
    configuration.convert,
    configuration.preview,
    trials.hold,
    ddl.ddl,
    iam.iam,
    adoption.adopt,
    verify.verify,
    metrics.metrics,
    landed.land,
    landed.rewrite,
    landed.clean,
    change.compact,
    change.erase,
    change.reformat,
    change.restore,
    change.retention,
    spark.spark,
):
    app.command("test" if command is trials.hold else None)(command)  # pytest would collect a function of that name
app.add_typer(index.app, name="index")
app.add_typer(schema.app, name="schema")
app.add_typer(table.app, name="table")
app.add_typer(dead_letters.app, name="dead-letters")


@functools.cache
def program() -> Any:
    """All commands with their options, which take a twentieth of a second to be read from the functions above."""
    return typer.main.get_command(app)


def main() -> NoReturn:
    """The console script."""
    try:
        program()()
    except (ConfigurationError, IncompleteError) as error:
        fail(error, INPUT)
    except S3LakeError as error:
        fail(error, FAILED)
    except Exception:  # Python's own exit code for these, 1, says that differences were found
        traceback.print_exc()
        raise SystemExit(FAILED) from None
    raise SystemExit(0)
