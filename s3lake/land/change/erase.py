"""Erase: rows of landed hours for which a condition holds, from data, sidecars and dead letters.

The objects that hold such a row are written anew without it, the others of their commit copied, and at the end nothing
is left of the old ones: neither objects nor the manifests that name them. Kafka is not asked, and keeps what it has.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import chain
from operator import attrgetter

import msgspec
import pyarrow as pa

from s3lake.commit.clean import forget_replaced
from s3lake.commit.documents import LETTERS, File, Manifest, Read, Reason
from s3lake.commit.letters import Tally
from s3lake.commit.letters import united as letters_united
from s3lake.commit.protocol import Attempt, Staged, mark_of
from s3lake.commit.recovery import abort
from s3lake.encode.formats import FORMATS
from s3lake.errors import ConfigurationError, DataLossError
from s3lake.land.change import rest
from s3lake.land.change.condition import Condition
from s3lake.land.replace import carry_over, group_compatible, replace_commits, settle_hour
from s3lake.land.replay.beside import copied_as, named
from s3lake.land.target import TopicSink, retry_fenced
from s3lake.land.task.outcomes import merged
from s3lake.objects import Shape, batches, columns, content, tables
from s3lake.objects.letters import Letter, letters
from s3lake.schema.types import Columns, from_document
from s3lake.store import COMMIT
from s3lake.store.reading import opened
from s3lake.store.upload import uploaded

REASON = "erase"
_LETTER_COLUMNS = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.int64()),
        ("key", pa.string()),
        ("value", pa.string()),
        ("headers", pa.list_(pa.struct([("name", pa.string()), ("value", pa.string())]))),
        ("stage", pa.string()),
        ("message", pa.string()),
    ]
)


@dataclass(frozen=True)
class Person:
    """Which rows are erased.

    Attributes:
        where: of data and sidecars.
        letters: of dead letters, which have other columns; None to ask them the same, if they have its columns.
    """

    where: Condition
    letters: Condition | None = None


@dataclass(frozen=True)
class Erased:
    """What is taken out of one object; `replaced_by` is empty before it is done, and where nothing of it is left."""

    key: str
    stream: str
    rows: int
    of: int
    replaced_by: str = ""

    def __str__(self) -> str:
        return f"{self.rows:,} of {self.of:,} rows of {self.key}"


@dataclass(frozen=True)
class Erasure:
    """What is taken out of an hour.

    Attributes:
        records: rows and dead letters; sidecars hold the same records once more.
        copied: objects without such a row that are written again as they are, because their commit is replaced.
        unasked: dead letters that stay because they lack a column that the condition names.
        obstacle: why the hour stays as it is; empty where it does not.
    """

    hour: str
    records: int = 0
    objects: tuple[Erased, ...] = ()
    copied: int = 0
    obstacle: str = ""
    unasked: int = 0

    def __str__(self) -> str:
        if self.obstacle:
            return f"{self.hour}: it stays as it is: {self.obstacle}"
        taken = "".join(f"\n  {one}" for one in self.objects)
        if self.unasked:
            taken += (
                f"\n  {self.unasked:,} dead letters stay: they have no column of the data that --where names. Say by "
                "--dead-letters which of them are meant"
            )
        return f"{self.hour}: {self.records:,} records; {self.copied:,} objects beside them are copied{taken}"


def erasures(target: TopicSink, hours: Iterable[str], person: Person) -> Iterator[Erasure]:
    """What erasing would do; nothing is said of hours that hold no such row, and no dead letter that is not asked.

    Raises:
        ConfigurationError: the condition cannot be asked of the columns of an hour.
        DataLossError: an object is gone, or cannot be read.
    """
    for hour in hours:
        stored = target.index.tile(hour)
        if stored is None or not stored[0].commits:
            continue
        if target.manifests(hour) is None:
            yield Erasure(hour, obstacle="it is not landed as a whole; its commits so far are not looked at")
            continue
        commits = retry_fenced(partial(_looked, target, hour, person))
        if any(commit.records or commit.unasked for commit in commits):
            yield _erasure(hour, commits)


def erase(target: TopicSink, hour: str, person: Person) -> Erasure:
    """Erase rows of an hour that is landed as a whole, and all that is left of the objects that held them.

    Raises:
        ConfigurationError: the condition cannot be asked of the columns of the hour.
        DataLossError: an object is gone, or cannot be read; what is not done is as it was.
        TransientError: the store, the table or another writer was in the way: this can be repeated.
    """
    done: list[_Commit] = []
    anew: dict[str, str] = {}
    others: list[_Commit] = []

    def take_out() -> None:
        settle_hour(target, hour)
        looked = _looked(target, hour, person)
        others[:] = [commit for commit in looked if not commit.records]
        commits = {commit.manifest.id: commit for commit in looked if commit.records}
        for group in group_compatible([one.manifest for one in commits.values()]):
            own = [commits[manifest.id] for manifest in group]
            replace_commits(target, hour, group, REASON, partial(_staged, target, own, anew))
            done.extend(own)

    retry_fenced(take_out)
    forget_replaced(target.index, hour, REASON, target.pace)
    return _erasure(hour, [*done, *others], anew)


@dataclass
class _Source:
    """Files of one commit that hold the same records: data and sidecars by stream, or dead letters."""

    files: dict[str, File] = field(default_factory=dict)
    gone: set[int] = field(default_factory=set)

    @property
    def first(self) -> File:
        return next(iter(self.files.values()))


@dataclass
class _Commit:
    """One commit, which of its rows are meant, and how many dead letters were not asked."""

    target: TopicSink
    manifest: Manifest
    unasked: int = 0

    @cached_property
    def sources(self) -> list[_Source]:
        sources: dict[tuple[int, str | None, int, bool], _Source] = {}
        for file in self.manifest.files:
            place = (file.partition, file.group, file.first_offset, file.kind == LETTERS)
            sources.setdefault(place, _Source()).files[file.kind] = file
        return list(sources.values())

    @property
    def changed(self) -> list[_Source]:
        """What records are taken out of."""
        return [source for source in self.sources if source.gone]

    @property
    def records(self) -> int:
        return sum(len(source.gone) for source in self.sources)

    def shape(self, stream: str) -> Shape:
        if stream == LETTERS:
            return Shape("json")
        shape = Shape.of(self.manifest)
        return shape if stream == "data" else shape.sidecar(stream)

    def columns(self, recorded: Columns) -> pa.Schema:
        """Return the columns that rows of its data may have."""
        data = self.shape("data")
        return columns.of(data, data.columns.fields if data.columns else recorded)

    def body(self, file: File) -> bytes:
        """The bytes of an object; rows are looked for in one object at a time.

        Raises:
            DataLossError: it is gone, or is another one.
        """
        with opened(self.target.store, file.key, file.bytes, self.manifest.id) as body:
            return body.read()


def _looked(target: TopicSink, hour: str, person: Person) -> list[_Commit]:
    """The commits of an hour, each with the rows that are meant."""
    commits = [_Commit(target, manifest) for manifest in target.manifests(hour) or []]
    with target.index.reading(hour, [commit.manifest.id for commit in commits]):
        stored = target.index.columns()
        recorded = from_document(stored[0].columns) if stored else {}
        for commit in commits:
            for source in commit.sources:
                if LETTERS not in source.files:
                    source.gone = set(_rows(commit, source, person.where, recorded))
                elif person.letters is None and person.where.find_missing(commit.columns(recorded), _LETTER_COLUMNS):
                    commit.unasked += source.first.records
                else:
                    source.gone = set(_letters(commit, source.files[LETTERS], person))
    return commits


def _rows(commit: _Commit, source: _Source, where: Condition, recorded: Columns) -> Iterator[int]:
    """The rows that are meant. Columns that its hour has, and not these records, are null."""
    whole: dict[str, pa.ChunkedArray] = {}
    first = source.first
    for stream in sorted(source.files):  # data before keys
        file = source.files[stream]
        shape, body = commit.shape(stream).of_file(file), commit.body(file)
        if not shape.separable and sum(map(len, content.records(shape, body, file.key))) != file.records:
            raise ConfigurationError(
                f"{file.key}: its records cannot be told apart, because their separator stands inside of one: "
                "nothing can be taken out of it. Retention takes out whole hours"
            )
        table = _table(shape, body, file.key, where, recorded)
        if table.num_columns and table.num_rows != file.records:
            raise DataLossError(f"{file.key} has {table.num_rows} rows, its manifest says {file.records}")
        whole = {**{name: table[name] for name in table.column_names}, **whole}
    declared = commit.columns(recorded)
    for column in where.columns(declared) or declared:
        whole.setdefault(column.name, pa.chunked_array([pa.nulls(first.records, column.type)]))
    row = 0
    for batch in pa.table(whole).combine_chunks().to_batches():
        yield from (row + at for at in where.rows(batch, first.key))
        row += batch.num_rows


def _table(shape: Shape, body: bytes, key: str, where: Condition, recorded: Columns) -> pa.Table:
    """The columns that are asked for, of those that a file really has."""
    if shape.format in ("parquet", "avro"):
        asked = where.columns(tables.opened(shape, body, key).schema)
        read = tables.opened(shape, body, key, asked.names).batches
    elif shape.format == "bytes":
        name = shape.envelope.fields[0] if shape.envelope else "value"
        asked = where.columns(pa.schema([(name, pa.binary())]))
        read = (pa.record_batch([pa.array(some, pa.binary())], [name]) for some in content.records(shape, body, key))
    else:
        asked = where.columns(columns.of(shape, shape.columns.fields if shape.columns else recorded))
        read = batches(shape, body, key, asked)
    return pa.Table.from_batches(read, asked) if asked else asked.empty_table()


def _letters(commit: _Commit, file: File, person: Person) -> Iterator[int]:
    rows = [_row(letter) for letter in letters(io.BytesIO(commit.body(file)), file.key)]
    batch = pa.RecordBatch.from_pylist(rows, _LETTER_COLUMNS)
    if person.letters is not None:
        yield from person.letters.rows(batch, file.key)
        return
    try:
        yield from person.where.rows(batch, file.key)
    except ConfigurationError as error:
        raise ConfigurationError(
            f"{error}. Dead letters hold what could not be converted: say by --dead-letters which of them are meant, "
            "for example --dead-letters \"contains(value, 'alice@example.org')\""
        ) from None


def _row(letter: Letter) -> Mapping[str, object]:
    return {
        "topic": letter.topic,
        "partition": letter.partition,
        "offset": letter.offset,
        "timestamp": letter.timestamp_ms,
        "key": _text(letter.key),
        "value": _text(letter.value),
        "headers": [{"name": name, "value": _text(value)} for name, value in letter.headers],
        "stage": letter.stage,
        "message": letter.message,
    }


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode(errors="replace")


def _staged(target: TopicSink, commits: Sequence[_Commit], anew: dict[str, str], attempt: Attempt) -> Staged:
    """What takes the place of commits; `anew` gets the key of each object that was written without some of its rows."""
    files: list[File] = []
    try:
        for commit in commits:
            for source in commit.sources:
                for stream, file in source.files.items():
                    if len(source.gone) < file.records:
                        files.append(_written(target, commit, stream, file, source.gone, attempt.commit))
                        if source.gone:
                            anew[file.key] = files[-1].key
    except BaseException:
        abort(target.store, files)
        raise
    return replace(
        carry_over([one.manifest for one in commits]),
        files=tuple(sorted(files, key=attrgetter("key"))),
        reads=_reads(commits),
        letters=letters_united(map(_reasons, commits)),
    )


def _written(target: TopicSink, commit: _Commit, stream: str, file: File, gone: set[int], new: str) -> File:
    landed = target.sink.after_transforms
    shape, store = commit.shape(stream), target.store
    ending = FORMATS[shape.format].extension(shape.codec)
    endings = sorted((*landed.sidecars.endings, f".{stream}{ending}", landed.extension, ending), key=len, reverse=True)
    key = named(file.key, mark_of(commit.manifest.id), mark_of(new), endings)
    if not gone:
        return copied_as(store, commit.manifest, file, key, new)
    body = commit.body(file)
    anew = uploaded(store, key, {COMMIT: new}, partial(rest.write, shape, body, file.key, gone))
    records = file.records - len(gone)
    return msgspec.structs.replace(
        file, key=key, upload=anew.upload, parts=anew.parts, records=records, bytes=anew.size, digest=""
    )


def _reads(commits: Sequence[_Commit]) -> dict[int, Read]:
    reads = merged(one.manifest.partitions for one in commits)
    for source in chain.from_iterable(commit.changed for commit in commits):
        count, read = len(source.gone), reads[source.first.partition]
        if LETTERS in source.files:
            read = msgspec.structs.replace(read, dead=read.dead - count)
        else:
            read = msgspec.structs.replace(read, landed=read.landed - count)
        reads[source.first.partition] = msgspec.structs.replace(read, erased=read.erased + count)
    return reads


def _reasons(commit: _Commit) -> tuple[Reason, ...]:
    """Why the dead letters that are left are some."""
    dead = [source for source in commit.sources if LETTERS in source.files]
    if not any(source.gone for source in dead):
        return commit.manifest.letters
    tally = Tally()
    for source in dead:
        file = source.files[LETTERS]
        for row, letter in enumerate(letters(io.BytesIO(commit.body(file)), file.key)):
            if row not in source.gone:
                tally.add(letter.stage, letter.message, letter.partition, letter.offset)
    return tally.reasons


def _erasure(hour: str, commits: Sequence[_Commit], anew: Mapping[str, str] = {}) -> Erasure:
    objects, copied, changed = [], 0, [commit for commit in commits if commit.records]
    for source in chain.from_iterable(commit.sources for commit in changed):
        if not source.gone:
            copied += len(source.files)
            continue
        for file in source.files.values():
            objects.append(Erased(file.key, file.kind, len(source.gone), file.records, anew.get(file.key, "")))
    unasked = sum(commit.unasked for commit in commits)
    return Erasure(hour, sum(commit.records for commit in changed), tuple(objects), copied, unasked=unasked)
