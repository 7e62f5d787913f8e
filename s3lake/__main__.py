"""The console script, and `python -m s3lake`."""

import sys
from typing import NoReturn

from s3lake import interrupts


def main() -> NoReturn:
    """Run the command line. A Ctrl-C at any moment, also while it is imported, ends it with 130 and without a trace.

    SIGTERM, by which containers and schedulers end a command, does what a Ctrl-C does: servers, Spark and temporary
    files end with the command.
    """
    try:
        interrupts.install()
        from s3lake import cli

        try:
            try:
                cli.main()
            finally:
                if not interrupts.have_arrived() and (archive := sys.modules.get("s3lake.land.spark.class_archive")):
                    archive.keep()  # seconds, once a machine: it may be interrupted
        finally:
            _end()
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt) or interrupts.have_arrived():  # or another error, that was made of it
            raise SystemExit(130) from None
        raise
    finally:
        _end()  # again: in the imports it was not called, and before its first line another interrupt may arrive
        interrupts.keep_exit_code()


def _end() -> None:
    """Ignore interrupts from now on, and end Spark, which takes seconds.

    Python takes the handlers out before it ends: a signal would then end it with another exit code.
    """
    interrupts.ignore()
    launch = sys.modules.get("s3lake.land.spark.launch")
    if launch is not None:  # what has not imported it has started no Spark
        launch.end()


if __name__ == "__main__":
    main()
