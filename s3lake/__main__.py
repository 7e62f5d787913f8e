"""The console script, and `python -m s3lake`."""

from typing import NoReturn


def main() -> NoReturn:
    """Run the command line. A Ctrl-C while it is imported ends it as any other does: with 130 and without a trace."""
    try:
        from s3lake import cli

        cli.main()
    except KeyboardInterrupt:
        raise SystemExit(130) from None


if __name__ == "__main__":
    main()
