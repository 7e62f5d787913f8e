"""A key that begins with a slash because the sink's own template does, as a prefix of Aiven's may."""

from pathlib import Path

from s3lake.store.memory import MemoryStore
from s3lake_tests.config import bases
from s3lake_tests.lake import START, at
from s3lake_tests.plugins import installed
from s3lake_tests.source.inline import inline, verified


def test_a_prefix_of_aivens_that_begins_with_a_slash_is_landed_and_verified(tmp_path: Path) -> None:
    topic = tmp_path / "logs" / "demo"
    topic.mkdir(parents=True)
    (topic / "0.txt").write_text(f"{at(START)} {{}}\n{at(START, 60)} {{}}\n")
    with installed(tmp_path / "packages", "lines_source", "[s3lake.sources]\nlines = lines_source:LinesSource\n"):
        changes: dict[str, str | None] = {
            "bootstrap.servers": None,
            "s3lake.start": START,
            "s3lake.source.type": "lines",
            "s3lake.source.options.directory": str(tmp_path / "logs"),
            "aws.s3.prefix": "/raw/{{topic}}/",
        }
        config = bases.load(bases.AIVEN, changes).config
        store = MemoryStore("lake")
        landing = inline(config, "demo", store, lambda: at(START, 90))
        landing.land([START])
        assert [key for key in store.objects if not key.startswith(".indexes/")] == [
            "/raw/demo/demo-0-00000000000000000000.gz"
        ]
        assert verified(config, landing).clean
