"""Hours of tables: who may hand them in, and what is written of them. `test_protocol.py` has the hours of topics."""

from collections.abc import Iterator

import pytest

from s3lake.errors import ConfigurationError
from s3lake.index.commit.documents import TABLE, TopicHead
from s3lake.index.commit.open_and_close import create_table_hour, require_owner
from s3lake.index.commit.topic_index import TopicIndex
from s3lake.index.plan.tile import Tile, TileRange
from s3lake_tests.index.commit.actors import Actor, Work
from s3lake_tests.index.commit.kafka import hour
from s3lake_tests.index.commit.world import World

DAILY, OTHER = ("daily", "orders"), ("other", "orders")
REFUSAL = r"'orders': the index of this sink holds the tables of asset \['daily', 'orders'\], and asset \['other', "


@pytest.mark.parametrize("requested", [False, True], ids=["new", "after a topic that never came to exist"])
def test_a_table_gets_an_hour_of_one_offset_once(requested: bool, index: TopicIndex):
    if requested:
        index.create(index.head_key, TopicHead())
    create_table_hour(index, hour(0))
    assert index.tile(hour(0)) is not None
    create_table_hour(index, hour(0))
    create_table_hour(index, hour(1))

    head, _ = index.head()
    assert (head.topic_id, head.hours, head.new) == (
        TABLE,
        ((hour(0), hour(1)),),
        Tile(hour(1), {0: TileRange(0, 0, 1)}),
    )
    assert index.tile(hour(0))[0] == Tile(hour(0), {0: TileRange(0, 0, 1)})
    assert index.tile(hour(1))[0] == head.new


@pytest.mark.parametrize("head", [TopicHead(topic_id="a"), TopicHead(hours=((hour(0), hour(0)),))])
def test_a_table_gets_no_hour_where_a_topic_has_records(index: TopicIndex, head: TopicHead):
    index.create(index.head_key, head)

    with pytest.raises(ConfigurationError, match="holds records of Kafka's topic of this name"):
        create_table_hour(index, hour(1))
    assert index.head()[0] == head


# Assets whose tables would have the same name


@pytest.fixture
def owned(index: TopicIndex) -> TopicIndex:
    """The tables of the asset `daily/orders`: hour 0."""
    create_table_hour(index, hour(0), list(DAILY))
    index.store.calls.clear()
    return index


def test_tables_are_of_the_asset_that_handed_in_the_first(owned: TopicIndex):
    create_table_hour(owned, hour(1), DAILY)

    assert owned.head()[0].owner == DAILY


@pytest.mark.parametrize("number", [0, 1], ids=["that the owner has", "that is new"])
def test_another_asset_gets_no_hour(number: int, owned: TopicIndex):
    before = dict(owned.store.objects)

    with pytest.raises(ConfigurationError, match=REFUSAL):
        create_table_hour(owned, hour(number), OTHER)
    assert owned.store.objects == before


def test_nothing_is_written_of_an_hour_that_its_owner_hands_in_again(owned: TopicIndex):
    create_table_hour(owned, hour(0), DAILY)

    assert {name for name, _ in owned.store.calls} == {"get"}


def test_tables_without_an_owner_are_of_the_first_asset_that_hands_one_in(index: TopicIndex):
    create_table_hour(index, hour(0))
    create_table_hour(index, hour(0), DAILY)
    create_table_hour(index, hour(0))

    assert index.head()[0].owner == DAILY


def test_only_their_owner_may_use_tables(owned: TopicIndex):
    require_owner(owned, list(DAILY))
    require_owner(owned, ())
    with pytest.raises(ConfigurationError, match=REFUSAL):
        require_owner(owned, OTHER)


def test_tables_without_an_owner_are_open_to_every_asset(index: TopicIndex):
    require_owner(index, OTHER)
    create_table_hour(index, hour(0))
    require_owner(index, OTHER)


# Two processes that have both read that the tables have no owner


@pytest.fixture
def world() -> Iterator[World]:
    """Hour 0 is of tables that have no owner."""
    with World(mode="tables") as world:
        create_table_hour(world.index, hour(0))
        yield world


def start_and_stop_before_its_write(world: World, work: Work) -> Actor:
    return world.do("A", work, until=lambda request: request.method == "put" and request.key == world.index.head_key)


def test_an_owner_is_noted_though_an_hour_was_created_meanwhile(world: World):
    first = start_and_stop_before_its_write(world, lambda me: create_table_hour(me.index, hour(0), DAILY))
    world.do("B", lambda me: create_table_hour(me.index, hour(1)))
    world.run(first)

    head, _ = world.index.head()
    assert (head.owner, head.hours) == (DAILY, ((hour(0), hour(1)),))


def test_an_asset_is_refused_if_the_tables_became_anothers_meanwhile(world: World):
    refused: list[str] = []

    def hand_in(me: Actor) -> None:
        with pytest.raises(ConfigurationError, match=REFUSAL) as caught:
            create_table_hour(me.index, hour(0), OTHER)
        refused.append(str(caught.value))

    second = start_and_stop_before_its_write(world, hand_in)
    world.do("B", lambda me: create_table_hour(me.index, hour(0), DAILY))
    world.run(second)

    assert refused
    assert world.index.head()[0].owner == DAILY
