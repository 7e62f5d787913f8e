"""Looks for stories in which an invariant breaks: `python -m trials protocol --examples 100000 --seed 1`.

It plays what `test_protocol_properties.py` plays, in rounds of which each has a seed of its own. The shortest story
that fails is put into `corpus/`, where the fast suite plays it from then on: give it a name that says what went wrong.
"""

import argparse
import ast
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

TESTS = Path(__file__).parents[1] / "s3lake_tests" / "index" / "commit" / "test_protocol_properties.py"
CORPUS = TESTS.with_name("corpus")
ROUND = 2
"""Times what the fast suite plays: a round is long enough for Hypothesis, and short enough to be stopped after."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--examples", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    tried: Counter[str] = Counter()
    for seed in range(asked.seed, asked.seed + asked.examples):
        passed, output = played(seed)
        tried.update(counted(output))
        print(f"seed {seed}: {tried['examples']:,} examples, {tried['requests']:,} requests", flush=True)
        if not passed:
            print(output)
            return 1
        if tried["examples"] >= asked.examples:
            break
    print(f"{dict(tried)}: every invariant holds")
    return 0


def played(seed: int) -> tuple[bool, str]:
    """Whether a round holds, and what it printed."""
    kept = CORPUS / f"new-{seed}.txt"
    round_ = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-qsx",
            "-pno:cacheprovider",
            f"--hypothesis-seed={seed}",
            "--timeout=0",
            TESTS,
        ],
        env={**os.environ, "S3LAKE_EXAMPLES": str(ROUND), "S3LAKE_COUNT": "1", "S3LAKE_FAILURES": str(kept)},
        capture_output=True,
        text=True,
        check=False,
    )
    return round_.returncode == 0, round_.stdout + round_.stderr


def counted(output: str) -> Counter[str]:
    """What a round says that it tried."""
    counts = re.search(r"^ (\{'examples': .*\})", output, re.MULTILINE)
    if counts is None:
        raise SystemExit(f"the tests printed no counts:\n{output}")
    return Counter(ast.literal_eval(counts[1]))
