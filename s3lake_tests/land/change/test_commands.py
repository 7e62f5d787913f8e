"""The commands, as users type them: over a real S3 API, with a table that follows."""

import pyarrow as pa
from typer.testing import CliRunner

from s3lake.cli import app
from s3lake_tests.lake.table.iceberg.shelf import FIVE, SIX, Shelf, loaded, rows


def run(*words: str, code: int = 0) -> str:
    done = CliRunner().invoke(app, words, catch_exceptions=False)
    assert done.exit_code == code, done.output
    return done.stdout


def objects(shelf: Shelf) -> list[str]:
    return list(shelf.index.store.list("orders/"))


def test_erase_reports_what_it_would_erase_erases_it_from_objects_and_table_and_then_has_nothing_to_do(
    shelf: Shelf,
) -> None:
    config, first = shelf.configuration(), shelf.commit(FIVE)
    shelf.commit(SIX, pa.table({"id": [10, 11], "type": ["c", "c"]}))
    shelf.table().sync()
    where = ("erase", config, "--where", "type = 'a'")
    planned = run(*where).splitlines()
    assert planned == [
        f"events orders {FIVE}: 5 records; 0 other objects are copied",
        f"  5 of 10 rows of {first.files[0].key}",
        "nothing is changed yet: --yes does it",
    ]
    assert (len(rows(shelf)), len(objects(shelf))) == (12, 2)
    assert run(*where, "--yes").splitlines() == planned[:2]
    assert sorted(row["type"] for row in rows(shelf)) == ["b"] * 5 + ["c"] * 2
    assert first.files[0].key not in objects(shelf)
    assert {task.file.file_path for task in loaded(shelf).scan().plan_files()} == {
        f"s3://{shelf.bucket}/{key}" for key in objects(shelf)
    }
    assert run(*where) == "nothing to change\n"
