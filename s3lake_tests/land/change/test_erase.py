"""Erasing: no byte of the person is left in any object, and every other record is as it was."""

import gzip
import io
from collections.abc import Iterator
from typing import Any

import fastavro
import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from s3lake.errors import ConfigurationError, DataLossError, FencedError
from s3lake.index.commit.protocol import Committed
from s3lake.index.commit.replacing_attempts import begin_rewrite
from s3lake.land.change import hour_change
from s3lake.land.change.condition import Condition
from s3lake.land.change.erase import EraseConditions, erase_hour, erase_hours
from s3lake.land.change.hour_change import replace_commits
from s3lake_tests.lake.verify.sinks import sinks
from s3lake_tests.lake.verify.world import HOUR
from s3lake_tests.land.change.parts import Parts, holding

ALICE, BOB = "alice-7f3e", "bob-11aa"
ANYWHERE = f"contains(CAST(rows AS VARCHAR), '{ALICE}')"


def person(where: str = ANYWHERE, dead_letters: str | None = ANYWHERE) -> EraseConditions:
    return EraseConditions(
        Condition(where), None if dead_letters is None else Condition(dead_letters, "--dead-letters")
    )


def value(user: str, number: int) -> bytes:
    return b'{"user":"%s","n":%d}' % (user.encode(), number)


def contents(world: Parts) -> Iterator[tuple[str, str]]:
    """Every object and upload of the bucket, the index' included, as text."""
    for key, (body, _) in world.store.objects.items():
        yield key, key + _decoded(body)
    for upload in world.store.uploads.values():
        yield upload.key, upload.key + "".join(_decoded(part) for part in upload.parts.values())


def _decoded(body: bytes) -> str:
    if body.startswith(b"PAR1"):
        return repr(pq.read_table(io.BytesIO(body)).to_pylist()) + body.decode("latin-1")
    if body.startswith(b"Obj\x01"):
        return repr(list(fastavro.reader(io.BytesIO(body))))
    if body.startswith(b"\x1f\x8b"):
        return gzip.decompress(body).decode()
    if body.startswith(b"\x28\xb5\x2f\xfd"):
        return zstandard.ZstdDecompressor().stream_reader(body, read_across_frames=True).read().decode()
    return body.decode("latin-1")


def left(world: Parts) -> list[str]:
    """Objects that still contain something of the person."""
    return [key for key, text in contents(world) if ALICE in text]


def told_by_rows(sink: dict[str, Any]) -> bool:
    """Whether a condition can tell whose a row is, and not the name of its object alone.

    With a framing `verify` counts pieces, and takes a separator within an erased dead letter for a record that is lost.
    """
    envelope = sink.get("envelope", {"style": "record", "fields": ["value"]})
    clear = envelope["style"] != "flat" or envelope.get("value_encoding") == "none"
    return (
        "framing" not in sink["format"]
        and sink["converter"]["value"] != "bytes"
        and clear
        and "value" in envelope["fields"]
    )


@pytest.mark.long
@given(
    sink=sinks().filter(told_by_rows),
    users=st.lists(st.sampled_from([ALICE, BOB, BOB]), min_size=1, max_size=8),
    split=st.integers(1, 8),
)
def test_nothing_is_left_and_all_others_are_there_whatever_was_landed(
    sink: dict[str, Any], users: list[str], split: int
) -> None:
    world = Parts(**{"flush": {"count": 3}, **sink})
    found = [(user.encode(), value(user, number), [("h", user.encode())]) for number, user in enumerate(users)]
    for part in (found[:split], found[split:]):
        if part:
            world.land_records([(b"k", b"no JSON " + part[0][0], []), *part])
    landed, message = world.verified(), left(world)
    erase_hour(holding(world), HOUR, person())
    report = world.verify_clean()
    assert (left(world), world.store.uploads) == ([], {})
    erased = sum(one.erased for one in report.checked)
    assert report.landed + report.dead_letters + erased == landed.landed + landed.dead_letters
    assert erased > 0 or message == []


def test_the_lines_of_others_keep_their_bytes() -> None:
    world = Parts().land(b'{ "user": "bob-11aa",  "x": 1.50 }', value(ALICE, 1), b'{"user":"bob-11aa","x":"\\u00e9"}')
    erase_hour(holding(world), HOUR, person(f"value ->> 'user' = '{ALICE}'"))
    (body,) = world.bodies().values()
    assert body == b'{ "user": "bob-11aa",  "x": 1.50 }\n{"user":"bob-11aa","x":"\\u00e9"}\n'


@pytest.mark.parametrize(
    ("format", "codec", "highest"), [("json", "gzip", 9), ("avro", "deflate", 9), ("parquet", "zstd", 19)]
)
def test_the_rows_of_others_are_compressed_at_the_level_of_the_sink(format: str, codec: str, highest: int) -> None:
    others = [value(BOB, number * number % 7919) for number in range(3000)]
    sizes = []
    for level in (1, highest):
        world = Parts(format={"type": format, "codec": codec, "level": level}).land(value(ALICE, 1), *others)
        erase_hour(holding(world), HOUR, person(f"rows.user = '{ALICE}'" if format != "json" else ANYWHERE))
        sizes += [len(body) for body in world.bodies().values()]
    assert sizes[0] != sizes[1]


def test_columns_can_be_asked_and_objects_without_such_a_row_are_copied_byte_by_byte() -> None:
    world = Parts(format={"type": "parquet"}, flush={"count": 2})
    world.land(*(value(user, number) for number, user in enumerate([BOB, BOB, ALICE, BOB])))
    before = list(world.bodies().items())
    (plan,) = erase_hours(holding(world), [HOUR], person(f"user = '{ALICE}' AND n < 3"), yes=False)
    assert str(plan) == f"{HOUR}: 1 record; 1 other object is copied\n  1 of 2 rows of {before[1][0]}"
    done = erase_hour(holding(world), HOUR, person(f"user = '{ALICE}' AND n < 3"))
    after = list(world.bodies().items())
    assert (done.records, done.objects[0].key, done.objects[0].replaced_by) == (1, before[1][0], after[1][0])
    assert after[0][1] == before[0][1]
    assert pq.read_table(io.BytesIO(after[1][1])).to_pylist() == [{"user": BOB, "n": 3}]
    assert list(erase_hours(holding(world), [HOUR], person(), yes=False)) == []


def test_keys_of_objects_and_the_index_forget_the_person_too() -> None:
    world = Parts(layout={"partition_by": ["user"]})
    world.land(*(value(user, number) for number, user in enumerate([BOB, ALICE, BOB, ALICE])))
    assert any(key.startswith(".indexes") for key in left(world))
    erase_hour(holding(world), HOUR, person())
    assert left(world) == []
    world.verify_clean()


def test_columns_of_keys_next_to_the_data_can_be_asked() -> None:
    world = Parts(sidecars={"keys": "parquet", "headers": "json"})
    world.land_records([(ALICE.encode(), value("x", 1), []), (b"b", value("y", 2), [("h", b"1")])])
    done = erase_hour(holding(world), HOUR, person(f"key = '{ALICE}'"))
    assert [one.stream for one in done.objects] == ["data", "keys", "headers"]
    assert (left(world), world.verified().differences) == ([], ())


def test_dead_letters_without_the_column_stay_and_the_report_names_the_remedy() -> None:
    world = Parts(format={"type": "parquet"}).land(value(ALICE, 1), value(BOB, 2), b"no JSON " + ALICE.encode())
    (planned,) = erase_hours(holding(world), [HOUR], person(f"user = '{ALICE}'", dead_letters=None), yes=False)
    assert planned.records == 1
    done = erase_hour(holding(world), HOUR, person(f"user = '{ALICE}'", dead_letters=None))
    assert done.records == 1
    assert "--where does not apply to 1 dead letter without the columns that it names. Choose by --dead-letters" in str(
        done
    )
    (manifest,) = holding(world).manifests(HOUR) or []
    assert (manifest.partitions[0].landed, manifest.partitions[0].dead, manifest.partitions[0].erased) == (1, 1, 1)

    erase_hour(holding(world), HOUR, person(f"user = '{ALICE}'", dead_letters=f"contains(value, '{ALICE}')"))
    assert left(world) == []
    (manifest,) = holding(world).manifests(HOUR) or []
    assert manifest.refusal_reasons == ()


def test_dead_letters_whose_values_the_condition_does_not_fit_change_nothing_and_are_reported_with_the_remedy() -> None:
    world = Parts().land(value(ALICE, 1), b"no JSON " + ALICE.encode())
    before = dict(world.store.objects)
    with pytest.raises(ConfigurationError, match=r"Dead letters .* --dead-letters"):
        erase_hour(holding(world), HOUR, person(f"value ->> 'user' = '{ALICE}'", dead_letters=None))
    assert world.store.objects == before


def test_a_column_that_the_condition_has_in_a_text_alone_is_not_missing() -> None:
    data, dead_letters = pa.schema([("user", pa.string()), ("value", pa.string())]), pa.schema([("value", pa.string())])
    assert Condition("contains(value, 'the user''s user')").find_missing(data, dead_letters) == []
    assert Condition("contains(value, 'x') OR User = 'y'").find_missing(data, dead_letters) == ["user"]


def test_a_condition_on_an_unknown_column_is_refused_with_the_known_columns_and_quotes_no_row() -> None:
    world = Parts().land(value(BOB, 1))
    with pytest.raises(ConfigurationError, match=r"--where cannot be asked of .*Its columns are: value string"):
        list(erase_hours(holding(world), [HOUR], person("user = 'x'"), yes=False))
    with pytest.raises(ConfigurationError) as caught:
        list(erase_hours(holding(world), [HOUR], person("CAST(value AS INTEGER) = 1"), yes=False))
    assert BOB not in str(caught.value)


@pytest.mark.parametrize(
    "where", ["\"User\" = 'alice'", "user = 'alice'", "address.City = 'Ulm'", "address['city'] = 'Ulm'"]
)
def test_a_name_that_differs_from_another_in_case_only_is_refused_and_not_confused(where: str) -> None:
    world = Parts(format={"type": "parquet"})
    world.land(b'{"user":"alice","User":"bob","address":{"city":"Ulm","City":"Rom"},"n":1}', value(ALICE, 2))
    before = world.bodies()
    with pytest.raises(ConfigurationError, match="differs in case only: use other columns"):
        list(erase_hours(holding(world), [HOUR], person(where), yes=True))
    assert world.bodies() == before
    # Neither a string nor a comment names a column, and a comment no field inside one.
    others = person("n = 1 AND 'User' <> 'user' AND address IS NOT NULL -- User, address.City")
    assert [change.records for change in erase_hours(holding(world), [HOUR], others, yes=True)] == [1]


@pytest.mark.parametrize(
    "where",
    [
        "",
        "  -- n = 1",
        "n = 1 /*",
        "n =",
        "n = 1; select 1",
        "n = 1); select (1",
        "n = 1) or (true",
        "n = 1) group by (n",
        "n = 1 group by n",
        "n = 1 order by n",
        "n = 1 limit 1",
        "n = 1 qualify true",
        "n = 1 union select 1",
        "n = 1) from rows where (true",
        "n = 1 as y, true",
        "n = 1; copy rows to 'x'",
        "n = 1; create macro f(x) as x",
        "(select true)",
        "exists (from rows)",
        "n in (select n from rows)",
        "(select count(*) from read_csv('/etc/passwd')) > 0",
        "contains((select content from read_text('/etc/hostname')), user)",
        "(from query('select true'))",
        "n = ?",
        "n = $1",
    ],
)
def test_an_invalid_condition_is_refused_before_any_object_is_read(where: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^--where .*expected one condition over the columns of a row"):
        Condition(where)


@pytest.mark.parametrize(
    "where", ["n = getenv('HOME')", "sum(n) = 3", "row_number() over () = 2", "st_point(n, n) = n"]
)
def test_a_function_that_is_none_of_a_row_is_refused(where: str) -> None:
    with pytest.raises(ConfigurationError, match="--where cannot be asked of key"):
        Condition(where).rows(pa.record_batch({"n": [1, 2]}), "key")


def test_a_condition_over_all_of_a_row_does_not_see_its_number() -> None:
    batch = pa.record_batch({"user": [f"user {'abc'[number % 3]}" for number in range(50)]})
    assert Condition("contains(CAST(rows AS VARCHAR), '4')").rows(batch, "key") == []
    assert Condition("contains(CAST(rows AS VARCHAR), 'user b')").rows(batch, "key") == list(range(1, 50, 3))


def test_records_that_cannot_be_distinguished_are_refused() -> None:
    world = Parts(format={"type": "bytes", "framing": {"between": ""}}, converter={"value": "bytes"}).land(b"a", b"b")
    with pytest.raises(ConfigurationError, match="cannot be separated"):
        list(erase_hours(holding(world), [HOUR], person(), yes=False))


@pytest.mark.parametrize("left_to_do", [True, False])
def test_an_erase_that_is_fenced_between_two_groups_reports_what_it_does_not_count(
    left_to_do: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = Parts()
    for number, nulls in enumerate(["write", "skip"]):  # commits of two groups
        world.land(value(ALICE, number), value(BOB, number)).change(f"c{number}", nulls=nulls)
    world.write_index()
    calls = []

    def fenced(*arguments: Any) -> Committed | None:
        calls.append(arguments)
        done = None if len(calls) == 2 and left_to_do else replace_commits(*arguments)
        if len(calls) == 2:
            raise FencedError("another writer was faster")
        return done

    monkeypatch.setattr(hour_change, "replace_commits", fenced)
    (change,) = erase_hours(holding(world), [HOUR], person(), yes=True)
    assert (change.records, left(world)) == (int(left_to_do), [])
    assert str(change).endswith("; this does not count 1 commit replaced before")


def test_kafka_is_not_asked_for_what_was_erased() -> None:
    world = Parts().land(value(ALICE, 1), value(BOB, 2))
    erase_hour(holding(world), HOUR, person())
    head = world.index.head()
    assert head is not None
    with pytest.raises(DataLossError, match="1 of its records were erased"):
        begin_rewrite(world.index, None, head[0], HOUR)  # type: ignore[arg-type]


def test_a_record_that_is_lost_next_to_the_erased_ones_is_found() -> None:
    world = Parts().land(value(ALICE, 1), value(BOB, 2), value(BOB, 3))
    erase_hour(holding(world), HOUR, person())
    (manifest,) = holding(world).manifests(HOUR) or []
    world.overwrite(manifest.files[0], value(BOB, 2) + b"\n" + value(BOB, 4) + b"\n", manifest.id)
    report = world.verified()
    assert not report.clean
    assert report.missing == 1


def test_an_hour_that_is_not_complete_is_reported_and_stays() -> None:
    world = Parts().land(value(ALICE, 1))
    tile = world.tiles[HOUR]
    open_spans = {one: msgspec.structs.replace(span, end=None) for one, span in tile.partitions.items()}
    world.tiles[HOUR] = msgspec.structs.replace(tile, partitions=open_spans)
    world.write_index()
    (plan,) = erase_hours(holding(world), [HOUR], person(), yes=False)
    assert plan.blocker == "it is not complete"


def test_a_table_of_what_is_asked_is_read_in_its_columns_alone() -> None:
    schema = pa.schema([("user", pa.string()), ("n", pa.int64()), ("deep", pa.struct([("user", pa.string())]))])
    assert Condition("User = 'x'").columns(schema).names == ["user"]
    assert Condition("deep.user = 'x'").columns(schema).names == ["user", "deep"]
    assert Condition("true").columns(schema).names == schema.names
    assert Condition("contains(name, 'x')").columns(schema).names == []
