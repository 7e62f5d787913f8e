"""Files of many commits at once."""

from s3lake.commit.documents import File, Manifest, files_of

DATA, MORE = (File(key, "u", (), 0, 0, 0, 1, 1) for key in ("a", "b"))
LETTERS = File("c", "u", (), 0, 0, 0, 1, 1, kind="dead_letters")
COMMITS = [
    Manifest("1", "orders", "2026-11-20T05", {}, (DATA, LETTERS)),
    Manifest("2", "orders", "2026-11-20T05", {}, (MORE,)),
]


def test_files_come_in_the_order_of_their_commits_all_or_those_of_some_kinds():
    assert files_of(COMMITS) == [DATA, LETTERS, MORE]
    assert files_of(COMMITS, "data") == [DATA, MORE]
    assert files_of(COMMITS, "dead_letters", "data") == [DATA, LETTERS, MORE]
    assert files_of(COMMITS, "sidecar") == []
