"""The command line. Exit codes: 0 success, 1 differences found, 2 configuration or input, 3 failed while running."""

import contextlib
import functools
import logging
import traceback
from collections.abc import Callable, Mapping
from typing import Annotated, Any, NoReturn

import typer

from s3lake import interrupts
from s3lake.cli import change, check, ddl, dead_letters, iam, index, land, offline, services, shipped, status, verify
from s3lake.cli.output import (
    FAILED,
    INPUT,
    INTERRUPTED,
    UNREAD,
    close_unwritable,
    end_command,
    fail,
    find_output_failure,
    take_every_text,
)
from s3lake.cli.request import CHANGE, HOURS, JSON, READING, ROUTES, SINK, SOURCE, Group, command
from s3lake.errors import ConfigurationError, IncompleteError, S3LakeError

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)


def _print_version(requested: bool) -> None:
    if requested:
        from importlib import metadata

        typer.echo(f"s3lake {metadata.version('s3lake')}")
        raise typer.Exit


@app.callback(help=__doc__)
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    pass


_COMMANDS: Mapping[Callable[..., None], tuple[Group, ...]] = {
    services.run_demo: (READING, JSON),
    offline.run_init: (READING,),
    check.run_check: (SOURCE, JSON),
    shipped.run_files: (JSON,),
    offline.run_convert: (SOURCE,),
    offline.run_preview: (SOURCE, SINK, JSON),
    offline.run_test: (SOURCE, JSON),
    ddl.run_ddl: (SOURCE, ROUTES, CHANGE),
    iam.run_iam: (SOURCE, SINK),
    land.run_adopt: (SOURCE, ROUTES, CHANGE),
    land.run_land: (SOURCE, ROUTES, HOURS, JSON),
    status.run_status: (SOURCE, ROUTES, JSON),
    verify.run_verify: (SOURCE, ROUTES, HOURS, JSON),
    status.run_metrics: (SOURCE, ROUTES),
    land.run_rewrite: (SOURCE, ROUTES, HOURS, CHANGE),
    land.run_clean: (SOURCE, ROUTES, CHANGE),
    change.run_compact: (SOURCE, ROUTES, HOURS, CHANGE),
    change.run_erase: (SOURCE, ROUTES, HOURS, CHANGE),
    change.run_reformat: (SOURCE, ROUTES, HOURS, CHANGE),
    change.run_restore: (SOURCE, ROUTES, HOURS, CHANGE),
    change.run_retention: (SOURCE, ROUTES, CHANGE),
    services.run_spark: (SOURCE, JSON),
}
for _work, _groups in _COMMANDS.items():
    command(app, *_groups, name=_work.__name__.removeprefix("run_"))(_work)
for _name, _app in {
    "index": index.index,
    "schema": index.schema,
    "table": index.table,
    "dead-letters": dead_letters.app,
}.items():
    app.add_typer(_app, name=_name)


@functools.cache
def program() -> Any:
    """Return all commands as Click has them. It takes a twentieth of a second to build them."""
    return typer.main.get_command(app)


def main() -> NoReturn:
    """Run the console script."""
    # Py4J logs the trace of a Ctrl-C that ends a call of Spark, and of a call whose JVM has ended: an error reports
    # that.
    logged = ("KeyboardInterrupt", "Exception while sending command")
    logging.getLogger().addFilter(lambda record: not str(record.msg).startswith(logged))
    take_every_text()
    try:
        program()()
    except SystemExit as ended:
        if isinstance(ended.__context__, BrokenPipeError):  # Click ends with 1, which means differences
            raise SystemExit(UNREAD) from None
        raise
    except Exception as error:
        if interrupts.have_arrived():  # a package made this error of it, or Spark ended before the command
            raise SystemExit(INTERRUPTED) from None
        _fail(error)
    finally:
        close_unwritable()
    raise SystemExit(0)


def _fail(error: Exception) -> NoReturn:
    if isinstance(error, (ConfigurationError, IncompleteError)):
        fail(error, INPUT)
    if isinstance(error, S3LakeError):
        fail(error, FAILED)
    if isinstance(error, OSError) and (reason := find_output_failure()):
        remedy = "give it space, or write the output elsewhere. What was landed stays"
        end_command(f"standard output cannot be written to: {reason.strerror}; {remedy}", FAILED)
    with contextlib.suppress(OSError):
        traceback.print_exception(error)  # Python's own exit code for these, 1, means that differences were found
    raise SystemExit(FAILED)
