"""What is counted of the documents of an index."""

from s3lake.index.commit.documents import DEAD_LETTERS, File, Manifest, Read, count_data_files


def test_counts_of_two_ranges_of_a_topic_partition_add_up():
    former = Read(10, 20, oldest_ms=100, newest_ms=400, read=9, landed=5, dead=4, fields_filled={"a": 1, "b": 2})
    later = Read(20, 35, oldest_ms=300, newest_ms=350, read=15, landed=15, fields_filled={"b": 5})
    both = Read(10, 35, oldest_ms=100, newest_ms=400, read=24, landed=20, dead=4, fields_filled={"a": 1, "b": 7})
    assert former + later == both
    assert later + former == both


def test_a_range_whose_records_have_no_time_changes_no_times():
    timed, untimed = Read(0, 5, oldest_ms=100, newest_ms=400), Read(5, 9)
    assert (timed + untimed).oldest_ms == 100
    assert (untimed + untimed).oldest_ms == 0


def test_dead_letters_are_no_data_files():
    files = tuple(File(stream, "upload", (), 0, 0, 9, 10, 100, stream) for stream in ("data", "keys", DEAD_LETTERS))
    assert count_data_files(Manifest("c", "orders", "2026-11-20T05", {}, files=files)) == 2
