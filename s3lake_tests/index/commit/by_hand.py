"""Steps of the commit that a test takes itself, without an actor."""

from s3lake.index.commit import protocol
from s3lake.index.plan.tile import Tile
from s3lake_tests.index.commit.kafka import hour, ms
from s3lake_tests.index.commit.world import World


def tile(world: World, number: int) -> Tile:
    return world.view().tiles[hour(number)]


def begin(world: World, number: int, limit: int = 99) -> protocol.Attempt | None:
    """As the healthy do it, without an actor."""
    head, _ = world.index.head()
    return protocol.begin_micro_batch(
        world.index, world.kafka, head, hour(number), limit=limit, now_ms=ms(world.minute)
    )
