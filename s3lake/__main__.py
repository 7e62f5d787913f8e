"""The console script, and `python -m s3lake`."""

import signal
import sys
from typing import NoReturn


def main() -> NoReturn:
    """Run the command line. A Ctrl-C while it is imported ends it as any other does: with 130 and without a trace.

    SIGTERM, by which containers and schedulers end a command, does what a Ctrl-C does: servers, Spark and temporary
    files end with the command.
    """
    try:
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        from s3lake import cli

        try:
            cli.main()
        finally:
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, signal.SIG_IGN)  # Spark ends within seconds
            launch = sys.modules.get("s3lake.land.spark.launch")
            if launch is not None:  # what has not imported it has started no Spark
                launch.end()
    except KeyboardInterrupt:
        raise SystemExit(130) from None


if __name__ == "__main__":
    main()
