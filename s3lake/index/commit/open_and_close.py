"""Open and close: how an hour gets its tile, and the tile its edges (docs/design/commit.md).

One tile is open at a time, the last. Only `topic.json` adds tiles.
"""

from collections.abc import Sequence

from s3lake import hours
from s3lake.errors import ConfigurationError, DataLossError
from s3lake.index.commit.documents import TABLE, TopicHead
from s3lake.index.commit.log_checks import ask_kafka, find_truncated_offsets, require_same_log
from s3lake.index.commit.recovery import settle_pending_commit
from s3lake.index.commit.topic_index import TopicIndex
from s3lake.index.plan import tile as tiles
from s3lake.index.plan.stamps import find_stamps_ahead
from s3lake.index.plan.tile import Tile, TileRange
from s3lake.source.offsets import Offsets


def open_hour(
    index: TopicIndex,
    offsets: Offsets,
    hour: str,
    *,
    earliest_hour: str | None = None,
    now_ms: int | None = None,
) -> TopicHead | None:
    """Give `hour` a tile. Return the topic's head, which announces it, or None while the topic does not exist.

    If its creator crashes before it writes the announced tile, the next reader of the tile writes it.

    Args:
        index: the index of the sink and topic.
        offsets: asked only when the tile has to be made.
        hour: the hour to open; an earlier tile still open is closed at once, whatever the time is.
        earliest_hour: the hour whose tile begins at the log start when no earlier tile exists.
        now_ms: this actor's clock, the system's if None; it decides what is noted as stamped ahead, and nothing else.

    Raises:
        DataLossError: the topic is another one than the index was cut from.
    """
    while True:
        stored = index.head()
        if stored is None:
            index.create(index.head_key, TopicHead())
            continue
        head, etag = stored
        if hours.in_ranges(hour, head.hours):
            return head
        if head.new is not None and head.new.hour != hours.before(hour, head.hours):
            index.create_announced_tile(head)  # the tile before is read when it is closed
        clock_ms = hours.now_ms() if now_ms is None else now_ms
        creation = _plan_tile(index, offsets, hour, head, earliest_hour, clock_ms)
        if creation is None:
            return None
        tile, topic_id = creation
        added = tuple(hours.merge_ranges([*head.hours, (hour, hour)]))
        opened = head.revise(hours=added, new=tile, topic_id=topic_id)
        if index.swap(index.head_key, opened, etag):
            index.create(index.tile_key(hour), tile)
            return opened


def require_owner(index: TopicIndex, owner: Sequence[str]) -> None:
    """Refuse the tables of another asset.

    Args:
        index: the index of the table's name.
        owner: the key of the asset that writes or reads them.

    Raises:
        ConfigurationError: the index holds tables of another asset, whose name is the same.
    """
    stored = index.head()
    if stored is not None:
        _refuse_other_owner(index, stored[0], owner)


def _refuse_other_owner(index: TopicIndex, head: TopicHead, owner: Sequence[str]) -> None:
    if head.owner and owner and head.owner != tuple(owner):
        raise ConfigurationError(
            f"{index.topic!r}: the index of this sink holds the tables of asset {list(head.owner)}, and asset "
            f"{list(owner)} would have the same name and remove its rows: give the asset another key or another sink. "
            "If it is the same asset, renamed: give it its former key"
        )


def create_table_hour(index: TopicIndex, hour: str, owner: Sequence[str] = ()) -> None:
    """Give `hour` a tile for a table that is handed in: one "offset", however many rows the table has.

    Args:
        index: the index of the table's name.
        hour: the hour of the table.
        owner: the key of the asset that hands it in: no other asset's tables get this name. Empty for none.

    Raises:
        ConfigurationError: the index holds the records of a topic, or the tables of another asset.
    """
    while True:
        stored = index.head()
        if stored is None:
            index.create(index.head_key, TopicHead())
            continue
        head, etag = stored
        if head.topic_id != TABLE and (head.topic_id or head.hours):
            raise ConfigurationError(
                f"{index.topic!r}: the index of this sink holds records of Kafka's topic of this name; give the table "
                "another name"
            )
        _refuse_other_owner(index, head, owner)
        index.create_announced_tile(head)
        table_owner = head.owner or tuple(owner)
        if hours.in_ranges(hour, head.hours):
            if table_owner == head.owner or index.swap(index.head_key, head.revise(owner=table_owner), etag):
                return
            continue
        tile = Tile(hour, {0: TileRange(0, 0, 1)})
        added = tuple(hours.merge_ranges([*head.hours, (hour, hour)]))
        revised = head.revise(hours=added, new=tile, topic_id=TABLE, owner=table_owner)
        if index.swap(index.head_key, revised, etag):
            index.create(index.tile_key(hour), tile)
            return


def close_hour(index: TopicIndex, offsets: Offsets, head: TopicHead, hour: str, now_ms: int) -> Tile:
    """Write the tile's edges for good, after settling what is pending. `now_ms`: see `open_hour`.

    Raises:
        DataLossError: the topic is another one than the index was cut from; its offsets are no edges of this tile.
        MissingDocumentError: the tile is missing.
    """
    while True:
        stored = index.tile(hour)
        if stored is None:
            index.create_announced_tile(head)
            stored = index.existing_tile(hour)
        tile, etag = stored
        if tile.closed:
            return tile
        if tile.pending is not None:
            settle_pending_commit(index, hour)
            continue
        kafka = ask_kafka(index, offsets, head, hour)
        require_same_log(index, offsets, tile, kafka)
        shut = tiles.close_tile(tile, kafka, find_stamps_ahead(kafka, now_ms))
        if index.swap_tile(shut, etag):
            return shut


def _plan_tile(
    index: TopicIndex,
    offsets: Offsets,
    hour: str,
    head: TopicHead,
    earliest_hour: str | None,
    now_ms: int,
) -> tuple[Tile, str] | None:
    if head.since is not None and hour < head.since:
        raise DataLossError(
            f"{index.topic} {hour} was landed by a connector before its bucket was adopted, or belongs to an earlier "
            f"topic of this name, which was deleted: the hours to land begin at {head.since}"
        )
    earlier, later = hours.before(hour, head.hours), hours.after(hour, head.hours)
    former = None
    if earlier is not None and head.since is not None and earlier < head.since:
        former, earlier = index.existing_tile(earlier)[0], None
    before = close_hour(index, offsets, head, earlier, now_ms) if earlier else None
    after = index.existing_tile(later) if later else None
    kafka = ask_kafka(index, offsets, head, hour)
    if not kafka.exists:
        return None
    if before is not None:
        if before.pending is not None and tiles.collect_epochs(kafka, before.partitions) != before.epochs:
            settle_pending_commit(index, before.hour)  # what is under way may be of a log that was cut
            before = index.existing_tile(before.hour)[0]
        require_same_log(index, offsets, before, kafka)
    # Between `accept` and now the log may have been cut again, and nothing is landed of it from there on.
    begun = Tile(hour, {partition: TileRange(at, at) for partition, at in head.begins.items()}, epochs=head.led)
    tile = tiles.open_tile(
        hour,
        kafka,
        before,
        after[0] if after else None,
        earliest=head.since is not None or hour == earliest_hour,
        former=former,
        recreated=head.since is not None,
        begins={**head.begins, **find_truncated_offsets(index, offsets, begun, kafka)},
        stamped_ahead=find_stamps_ahead(kafka, now_ms),
    )
    return tile, kafka.topic_id
