"""What each request of a store says, and what it makes of the answer."""

import logging
from collections.abc import Callable
from urllib.parse import parse_qsl, urlsplit
from xml.etree import ElementTree

import pytest

from s3lake.errors import StoreDeniedError
from s3lake.store import Begun, Document, Head
from s3lake.store.s3 import S3Store
from s3lake_tests.kit.http import Response
from s3lake_tests.store.scripted import Scripted, answering, ok, status

MINE = {"X-Amz-Meta-S3lake-Commit": "c1"}


@pytest.mark.parametrize(("span", "ranged"), [(None, None), ((3, 5), "bytes=3-4"), ((0, 1), "bytes=0-0")])
def test_an_object_is_its_bytes_its_etag_and_its_metadata(
    server: Scripted, span: tuple[int, int] | None, ranged: str | None
) -> None:
    server.script = [answering(200, b"34", MINE)]
    assert server.store().get("raw/k", span) == Document(b"34", '"e"', {"s3lake-commit": "c1"})
    assert server.asked == ["GET /lake/raw/k"]
    assert server.headers[0].get("range") == ranged


def test_a_head_is_the_etag_the_size_and_the_metadata(server: Scripted) -> None:
    server.script = [answering(200, b"four", MINE)]
    assert server.store().head("raw/k") == Head('"e"', 4, {"s3lake-commit": "c1"})
    assert server.asked == ["HEAD /lake/raw/k"]


@pytest.mark.parametrize(
    "ask",
    [
        lambda store: store.get("k"),
        lambda store: store.head("k"),
        lambda store: store.delete("k"),
        lambda store: store.abort_upload("k", "u"),
    ],
    ids=["get", "head", "delete", "abort"],
)
def test_where_nothing_is_there_is_none_and_no_error(server: Scripted, ask: Callable[[S3Store], object]) -> None:
    server.script = [status(404)]
    assert ask(server.store()) is None
    assert len(server.asked) == 1


def test_a_document_is_written_with_its_metadata_and_without_a_condition(server: Scripted) -> None:
    assert server.store().put("k", memoryview(b"body"), metadata={"s3lake-commit": "c1"}) == '"e"'
    assert server.bodies == [b"body"]
    sent = server.headers[0]
    assert sent["x-amz-meta-s3lake-commit"] == "c1"
    assert not {"if-match", "if-none-match"} & set(sent)


def page(**parts: str) -> Response:
    return ok("".join(["<Page>", *(f"<{name}>{text}</{name}>" for name, text in parts.items()), "</Page>"]).encode())


def queried(server: Scripted, *names: str) -> list[tuple[str | None, ...]]:
    """What each request said under these names."""
    queries = [dict(parse_qsl(urlsplit(asked).query)) for asked in server.asked]
    return [tuple(map(query.get, names)) for query in queries]


def test_a_listing_goes_on_where_a_page_ends(server: Scripted) -> None:
    server.script = [
        page(IsTruncated="true", Contents="<Key>raw/a</Key>", NextContinuationToken="t2"),
        page(IsTruncated="true", NextContinuationToken="t3"),
        page(IsTruncated="false", Contents="<Key>raw/b</Key>"),
    ]
    assert list(server.store().list("raw/")) == ["raw/a", "raw/b"]
    assert queried(server, "prefix", "continuation-token") == [("raw/", None), ("raw/", "t2"), ("raw/", "t3")]


def test_uploads_under_way_are_listed_page_by_page_with_the_moment_they_began(server: Scripted) -> None:
    one = "<Key>raw/{}</Key><UploadId>u-{}</UploadId><Initiated>2026-11-22T10:14:48.125Z</Initiated>"
    server.script = [
        page(IsTruncated="true", Upload=one.format("a", 1), NextKeyMarker="raw/a", NextUploadIdMarker="u-1"),
        page(IsTruncated="true", NextKeyMarker="raw/b"),
        page(IsTruncated="false", Upload=one.format("c", 2)),
    ]
    begun = list(server.store().list_uploads("raw/"))
    assert begun == [Begun("raw/a", "u-1", 1_795_342_488_125), Begun("raw/c", "u-2", 1_795_342_488_125)]
    assert queried(server, "prefix", "key-marker", "upload-id-marker") == [
        ("raw/", None, None),
        ("raw/", "raw/a", None),
        ("raw/", "raw/b", None),
    ]


def test_an_upload_has_its_metadata_from_the_beginning(server: Scripted) -> None:
    server.script = [page(UploadId="u-1")]
    assert server.store().create_upload("raw/k", {"s3lake-commit": "c1"}) == "u-1"
    assert server.asked == ["POST /lake/raw/k?uploads"]
    assert server.headers[0]["x-amz-meta-s3lake-commit"] == "c1"


def test_a_part_is_known_by_its_etag_and_the_checksum_that_was_asked_for(server: Scripted) -> None:
    server.script = [answering(200, b"", {"x-amz-checksum-sha1": "x=="})]
    assert server.store(checksum="SHA1").upload_part("k", "u", 7, b"part") == '"e" ChecksumSHA1=x=='
    assert server.store().upload_part("k", "u", 7, b"part") == '"e"'
    assert server.asked == ["PUT /lake/k?uploadId=u&partNumber=7"] * 2
    assert server.bodies == [b"part", b"part"]


def texts(document: bytes, *names: str) -> list[tuple[str, ...]]:
    """What an XML document says under these names, side by side."""
    root = ElementTree.fromstring(document)
    said = ([part.text or "" for part in root.iter() if part.tag.endswith(f"}}{name}")] for name in names)
    return list(zip(*said, strict=True))


@pytest.mark.parametrize(("replaces", "condition"), [(False, "*"), (True, None)])
def test_an_upload_is_completed_of_its_parts_in_their_order(
    server: Scripted, replaces: bool, condition: str | None
) -> None:
    server.script = [page(ETag="e")]
    assert server.store().complete_upload("k", "u", ["one", "two"], replace=replaces) == "completed"
    assert texts(server.bodies[0], "PartNumber", "ETag") == [("1", "one"), ("2", "two")]
    assert server.headers[0].get("if-none-match") == condition


@pytest.mark.parametrize(("wanted", "times"), [(None, 0), ("tried", 1), ("required", 1)])
def test_an_object_is_tagged_with_its_records_beside_its_own_tags_where_that_is_asked_for(
    server: Scripted, wanted: str | None, times: int
) -> None:
    server.store(offset_tags=wanted, tags=(("team", "data"),)).tag_offsets("raw/k", 7, 12, 5)
    assert server.asked == ["PUT /lake/raw/k?tagging"] * times
    tags = [("team", "data"), ("startOffset", "7"), ("endOffset", "12"), ("recordCount", "5")]
    assert [texts(content, "Key", "Value") for content in server.bodies] == [tags] * times


def test_a_bucket_that_takes_no_tags_is_told_of_once_where_they_are_only_tried(
    server: Scripted, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("s3lake.store.s3._untagged", set())
    server.script = [status(403, "AccessDenied")]
    store, other = server.store(offset_tags="tried"), server.store(offset_tags="tried")
    other.bucket = "other"
    for tagged in (store, store, other, other):
        tagged.tag_offsets("k", 7, 12, 5)
    told = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert ["s3://lake/k" in text for text in told] == [True, False]
    with pytest.raises(StoreDeniedError, match="PutObjectTagging s3://lake/k at "):
        server.store(offset_tags="required").tag_offsets("k", 7, 12, 5)


def test_what_a_store_ignored_is_seen_at_the_head_of_an_object(server: Scripted) -> None:
    store = server.store(created_with=(("ServerSideEncryption", "AES256"),))
    assert store.ignored("raw/k") == ["s3.objects.encryption"]
    server.script = [answering(200, b"", {"x-amz-server-side-encryption": "AES256"})]
    assert store.ignored("raw/k") == []
    assert server.asked == ["HEAD /lake/raw/k"] * 2
    assert store.requests == {"HeadObject": 2}
