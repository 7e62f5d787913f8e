"""The properties of a table that say which commits it holds."""

from s3lake.table.iceberg import ledger

IDS = ("a" * 32, "b" * 32)


def test_hours_are_kept_by_month_with_short_ids() -> None:
    hours = {"2026-11-30T23": ledger.shorten(IDS), "2026-12-01T00": ledger.shorten(IDS[:1])}
    assert ledger.update_properties({}, hours) == {
        "s3lake.landed.2026-11": "30T23=aaaaaaaaaaaa,bbbbbbbbbbbb",
        "s3lake.landed.2026-12": "01T00=aaaaaaaaaaaa",
    }


def test_what_is_written_is_read() -> None:
    hours = {"2026-11-30T23": ledger.shorten(IDS), "2026-12-01T00": ("c" * 12,)}
    assert ledger.read_ledger({**ledger.update_properties({}, hours), "owner": "me"}) == hours


def test_an_hour_without_a_commit_leaves() -> None:
    assert ledger.update_properties({"2026-11-30T23": ("a",)}, {"2026-11-30T23": ()}) == {"s3lake.landed.2026-11": ""}


def test_only_months_that_change_are_written_and_whole() -> None:
    before = {"2026-10-01T00": ("a",), "2026-11-30T22": ("b",), "2026-11-30T23": ("c",)}
    assert ledger.update_properties(before, {"2026-11-30T23": ("d",)}) == {"s3lake.landed.2026-11": "30T22=b 30T23=d"}
