"""Scripted traces that random search misses: each holds, and most break an invariant once their rule is taken out.

The labels are from docs/design/commit.md. Taking a rule out means replacing one small public function of the
product by one that lacks it; `mute` lists invariants that would only report the cause, where the test wants the damage.
Rules within a function are taken out by the trial `mutants`, and in docs/design/Commit.tla.
"""

import random
from collections.abc import Callable

import msgspec
import pytest

from s3lake.index.commit import clean as clean_module
from s3lake.index.commit import commit_files, log_checks, open_and_close, protocol, recovery
from s3lake.index.commit import replacing_attempts as replacing
from s3lake.index.commit.documents import Manifest
from s3lake.index.commit.operator_decisions import roll_back_by_hand
from s3lake.index.commit.topic_index import TopicIndex
from s3lake.index.plan import tile as tiles
from s3lake.index.plan.tile import Tile
from s3lake_tests.index.commit import invariants, table
from s3lake_tests.index.commit.actors import Actor, ActorRequest, completes, enters_pending
from s3lake_tests.index.commit.bucket import Circumstances
from s3lake_tests.index.commit.changing import compacting, merging
from s3lake_tests.index.commit.invariants import Violation
from s3lake_tests.index.commit.kafka import hour
from s3lake_tests.index.commit.works import accepting, cleaning, materialise, recovering, rewriting, void
from s3lake_tests.index.commit.world import Mode, World

Trace = Callable[[World], None]
Rule = Callable[[pytest.MonkeyPatch], None]


def deletes_data(request: ActorRequest) -> bool:
    return request.method == "delete" and request.key.startswith("data/")


def puts_manifest(request: ActorRequest) -> bool:
    return request.method == "put" and invariants.kind_of(request.key) is Manifest


def creates(number: int) -> Callable[[ActorRequest], bool]:
    """Announces the tile of an hour in topic.json, or (by a rule taken out) writes it without."""

    def wanted(request: ActorRequest) -> bool:
        announces = (
            request.method == "put"
            and request.key.endswith("topic.json")
            and hour(number).encode() in (request.arguments[1])
        )
        tile = request.puts_tile
        return announces or (tile is not None and tile.hour == hour(number))

    return wanted


def landing(
    world: World, records: int = 2, *, until: Callable[[ActorRequest], bool] = lambda _: False, chunk: int = 2
) -> Actor:
    """A lands so many records of hour 0, until its next request is one such."""
    world.kafka.produce(0, *range(1, records + 1))
    return world.do("A", materialise(0), until=until, chunk=chunk)


# -------------------------------------------------------------------------------------------------------------- commits


def rollback_zombie(world: World) -> None:
    """C1: Z, rolling A back, pauses before its DELETE; B lands the same bytes under the same name; Z goes on."""
    a = landing(world, 4, chunk=2, until=completes)
    world.step(a)
    world.lose_upload(min(world.bucket.uploads))
    z = world.start("Z", recovering(0))
    assert world.run(z, until=deletes_data)
    world.do("Y", recovering(0))
    world.do("B", materialise(0), chunk=2)
    world.run(z)
    world.run(a)


def shed(world: World) -> None:
    """C2: as C1, but the tile is closed below A's interval, and the next tile lands those offsets."""
    world.kafka.produce(0, 1, 2, 61, 62)
    a = world.do("A", materialise(0), chunk=1, until=completes)
    for _ in range(3):
        world.step(a)
    world.lose_upload(max(world.bucket.uploads))
    z = world.start("Z", recovering(0))
    assert world.run(z, until=lambda request: deletes_data(request) and "+2" in request.key)
    world.do("Y", recovering(0))
    world.minute = 65
    world.do("C", materialise(1), chunk=1)
    world.run(z)
    world.run(a)


def lost4(world: World) -> None:
    """C5: the answer of step 4 is lost, the SDK repeats it, and gets 412 by its own write."""
    a = landing(world, until=enters_pending)
    world.step(a, "answer lost")
    world.run(a)
    if world.view().tiles[hour(0)].burnt or world.outcomes["FencedError"]:
        raise Violation(world, "R4", "a commit that had won was rolled back")


def timeout4(world: World) -> None:
    """C5: step 4 times out although it was carried out, and even reading it back is not possible."""
    a = landing(world, until=enters_pending)
    world.step(a, "timeout, done")
    world.step(a, "timeout, not done")
    world.run(a)
    world.do("B", materialise(0))
    if world.view().tiles[hour(0)].burnt:
        raise Violation(world, "R4", "a commit that had won was rolled back")


def aba(world: World) -> None:
    """C6: clean fences A's commit and sweeps it, so the tile has again what A read; A wakes up at step 4."""
    a = landing(world, until=enters_pending)
    world.do("clean", cleaning())
    world.run(a)


def clean_live(world: World) -> None:
    """C7: clean has read the tile, without A in it; A does steps 4 to 6; clean goes on."""
    a = landing(world, until=enters_pending)
    clean = world.start("clean", cleaning())
    assert world.run(clean, until=lambda request: request.puts_tile is not None or request.method == "abort_upload")
    world.run(a)
    world.run(clean)


def clean_fenced(world: World) -> None:
    """C8: A was fenced by B, which has the same names; clean finds A's manifest."""
    a = landing(world, until=enters_pending)
    world.do("B", materialise(0))
    world.run(a)
    world.do("clean", cleaning())


def same_content(world: World) -> None:
    """C4: A's second upload vanishes; whoever settles A must not take B's equal object for A's."""
    a = landing(world, until=enters_pending)
    world.step(a)
    (upload,) = world.bucket.uploads
    world.place_foreign(world.bucket.uploads[upload].key)
    world.run(a)
    world.remove_foreign()
    world.do("B", materialise(0))


def late_object(world: World) -> None:
    """C9: a Complete is answered, its commit rolled back and cleaned, and only then the object becomes visible."""
    a = landing(world, 4, chunk=2, until=completes)
    world.step(a, "crash after", "late")
    world.lose_upload(min(world.bucket.uploads))
    world.do("Y", recovering(0))
    world.do("clean", cleaning())
    world.land_object()


def rewrite_crash(world: World) -> None:
    """C3: a rewrite, cut into other files, stops between two Completes."""
    landing(world, 4, chunk=2)
    world.minute = 72
    world.do("A", materialise(0), chunk=2)
    again = world.do("rewrite", rewriting(0), chunk=3, until=completes)
    world.step(again)


def rewrite_twice(world: World) -> None:
    """C3: the same hour is rewritten twice; replaced objects are deleted from the bucket at once."""
    world.kafka.produce(0, 1, 2, 3, 4)
    world.minute = 72
    world.do("A", materialise(0))
    for _ in range(2):
        world.do("rewrite", rewriting(0))
        world.check((invariants.i10_no_orphans,), world.view())
    assert world.outcomes["rewritten"] == 2


def refused_manifest(world: World) -> None:
    """The manifest's PUT is answered 409 and not carried out; its writer goes on."""
    a = landing(world, until=puts_manifest)
    world.step(a, twist="conflict")
    world.run(a)


def refused_manifest_untruly(world: World) -> None:
    """The same with 412, and the writer crashes between two Completes: what it completed has to be found again."""
    a = landing(world, chunk=1, until=puts_manifest)
    world.step(a, twist="untrue")
    world.run(a, until=completes)
    world.step(a, "crash after")


def refused_manifest_of_rewrite(world: World) -> None:
    """The same when an hour is rewritten: nothing is swept for a commit that no reader sees."""
    world.minute = 72
    landing(world, 4)
    again = world.do("rewrite", rewriting(0), until=puts_manifest)
    world.step(again, twist="conflict, in flight")
    world.run(again, until=deletes_data)
    if world.view().tiles[hour(0)].commits != ("c2",) or "c2" not in world.view().manifests:
        raise Violation(world, "D1", "files are swept for a commit without manifest")
    world.run(again)


def refused_tile(world: World) -> None:
    """A new tile's PUT is answered 409 and not carried out."""
    a = landing(world, until=lambda request: request.puts_tile is not None)
    world.step(a, twist="conflict")
    world.run(a)
    if a.error or world.outcomes["committed"] != 1:
        raise Violation(world, "R4", f"a healthy run met a refusal, and ended with {a.error}")


def refused_step4(world: World) -> None:
    """Step 4 is answered 409 and not carried out; no other process was first."""
    a = landing(world, until=enters_pending)
    world.step(a, twist="conflict")
    world.run(a)
    if world.outcomes["FencedError"]:
        raise Violation(world, "R4", "a writer fenced itself")


def slow_complete(world: World) -> None:
    """A's Complete takes its time; the store answers B that there is no such upload, and B rolls A back and lands."""
    a = landing(world, until=completes)
    world.step(a, twist="slow")
    world.do("B", materialise(0))
    world.run(a)
    world.check((invariants.i10_no_orphans,), world.view())


def slow_recovery(world: World) -> None:
    """The same of a process that completes what a crashed writer left."""
    a = landing(world, until=completes)
    a.crash()
    z = world.do("Z", recovering(0), until=completes)
    world.step(z, twist="slow")
    world.do("B", materialise(0))
    world.run(z)
    world.check((invariants.i10_no_orphans,), world.view())


def swept_meanwhile(world: World) -> None:
    """The same, while whoever rolled it back has looked for its object, and is about to clear the garbage."""
    a = landing(world, until=completes)
    world.step(a, twist="slow")
    s = world.start("S", recovering(0))
    world.run(s, until=lambda request: request.puts_tile is not None and not request.puts_tile.pending)
    world.step(s)
    world.run(s, until=lambda request: request.puts_tile is not None and not request.puts_tile.garbage)
    world.run(a, until=lambda request: request.puts_tile is not None)
    for _ in ("switch", "why it failed", "whether it is garbage"):
        world.step(a)
    world.run(s)
    world.run(a)
    world.check((invariants.i10_no_orphans,), world.view())


def swept_by_two(world: World) -> None:
    """S is about to clear garbage that O has swept as well; O has a commit pending when S goes on."""
    world.kafka.produce(0, 1, 2, 3, 4)
    world.minute = 65
    world.do("A", materialise(0))
    world.do("rewrite", rewriting(0), until=lambda request: request.method == "delete").crash()
    s = world.start("S", rewriting(0))
    world.run(s, until=lambda request: request.puts_tile is not None and not request.puts_tile.garbage)
    o = world.do("O", rewriting(0), until=completes)
    world.run(s)
    world.run(o)
    world.check((invariants.i10_no_orphans,), world.view())


def rewrite_compacted(world: World) -> None:
    """An hour is rewritten after compaction took some of its records out of Kafka: its files have the last copy."""
    world.minute = 72
    landing(world, 4)
    world.kafka.compact(0, 0, 1, 2)
    world.do("rewrite", rewriting(0))


# ---------------------------------------------------------------------------------------------------------------- tiles


def boundary(world: World) -> None:
    """T1: two runs either side of the hour, by their clocks; the later hour is opened first."""
    world.minute = 66
    world.kafka.produce(0, 1, 2, 66, 72)
    x = world.start("X", materialise(0), skew=-42)
    assert world.run(x, until=creates(0))
    world.do("Y", materialise(1, rounds=0))
    world.run(x)


def two_hours(world: World) -> None:
    """T2: after a gap, two runs open different hours at once."""
    world.minute = 270
    world.kafka.produce(0, 1, 72, 132, 198)
    world.do("A", materialise(0))
    x = world.start("X", materialise(2), skew=-120)
    y = world.start("Y", materialise(3))
    assert world.run(x, until=creates(2))
    assert world.run(y, until=creates(3))
    world.run(y)
    world.run(x)


def newpart(world: World) -> None:
    """T4: a topic-partition is added while hour 0 is open; some of its records belong to hour 0."""
    landing(world)
    world.add_partition()
    world.kafka.produce(2, 48, 54, 72)
    world.minute = 90
    world.do("B", materialise(1))


def newpart2(world: World) -> None:
    """T4: a topic-partition is added between the closing of hour 0 and the opening of hour 1."""
    world.minute = 60
    landing(world)
    world.add_partition()
    world.kafka.produce(2, 48, 54, 72)
    world.do("B", materialise(1))


def newpart_open(world: World) -> None:
    """T4: a topic-partition is added; one run over the open hour lands all of it."""
    landing(world)
    world.add_partition()
    world.kafka.produce(2, 3, 4)
    world.do("A", materialise(0))
    world.check((invariants.i11_no_stall,), world.view())


def close_under_batch(world: World) -> None:
    """T5: an hour is closed after A planned on it open, below the end of A's interval, and before A's step 4."""
    world.kafka.produce(0, 1, 2, 66, 72)
    a = world.do("A", materialise(0), until=puts_manifest)
    world.minute = 72
    world.do("B", materialise(1))
    world.run(a)


def close_over_pending(world: World) -> None:
    """T5: an hour is closed while A's commit, which reaches beyond the hour, is pending."""
    world.kafka.produce(0, 1, 2, 66, 72)
    a = world.do("A", materialise(0), until=enters_pending)
    world.step(a)
    world.minute = 72
    world.do("B", materialise(1, rounds=0))
    world.run(a)


def create_dies(world: World) -> None:
    """T6: the process that announced a tile crashes before writing it."""
    a = landing(world, until=creates(0))
    world.step(a, "crash after")
    world.do("B", materialise(1))


# ------------------------------------------------------------------------------------------------- topics created again


def close_recreated(world: World) -> None:
    """T10: a topic is created again; nothing of the former one's open hour may be cut by the new one's offsets."""
    world.kafka.produce(0, 1, 2)
    world.do("A", materialise(0, rounds=0))
    world.kafka.create_topic(2)
    world.kafka.produce(0, 3, 4, 5, 6, 7)
    world.minute = 66
    world.do("B", materialise(1))
    if world.view().tiles[hour(0)].closed:
        raise Violation(world, "T10", "an hour of the former topic was closed at an offset of the present one")


def rewrite_recreated(world: World) -> None:
    """T10: after accepting the new topic, an hour of the former one is rewritten; only its files have its records."""
    world.minute = 66
    landing(world)
    world.kafka.create_topic(1)
    world.kafka.produce(0, 70, 71, 72)
    world.do("accept", accepting())
    world.do("rewrite", rewriting(0))


# --------------------------------------------------------------------------------------------------------------- tables


def landed_in_a_table(world: World) -> None:
    """An hour is over, landed in two commits, and a table lists them; then the catalog goes away."""
    world.kafka.produce(0, 1, 2, 3, 4)
    world.minute = 65
    world.do("A", materialise(0), limit=2)
    world.catalog_away = True


def puts_table(request: ActorRequest) -> bool:
    return request.method == "put" and request.key == table.KEY


def table_behind_a_rewrite(world: World) -> None:
    """C14: a rewrite replaces what the table lists, and the run after it finds garbage."""
    landed_in_a_table(world)
    world.do("rewrite", rewriting(0))
    world.do("B", materialise(0))
    if not world.view().tiles[hour(0)].garbage:
        raise Violation(world, "tables", "the garbage is forgotten, and the table lists it")


def table_behind_a_merge(world: World) -> None:
    """C14: the small commits of an hour are merged, and `clean` runs, once at once, and once a day later."""
    landed_in_a_table(world)
    world.do("merge", merging(0))
    world.do("clean", cleaning())
    world.do("clean", cleaning(later_days=2))


def table_behind_a_manifest_that_is_old(world: World) -> None:
    """C14: the catalog is away so long that the manifest of what it lists is old, and was the last to name it."""
    landed_in_a_table(world)
    world.do("rewrite", rewriting(0))
    world.do("clean", cleaning(later_days=30))
    if "c1" not in world.view().manifests:
        raise Violation(world, "tables", "nothing names objects any more that a table lists")


def table_behind_a_rewrite_that_died(world: World) -> None:
    """C14: a rewrite crashes after its switch; the catalog answers, but the table has not followed yet."""
    landed_in_a_table(world)
    world.catalog_away = False
    rewrite_ = world.do("rewrite", rewriting(0), until=puts_table)
    rewrite_.crash()
    world.do("Z", recovering(0))


def catalog_goes_after_the_switch_of_a_change(world: World) -> None:
    """C14: compaction begins with a table that follows, and its catalog goes away just before it has to."""
    landed_in_a_table(world)
    world.catalog_away = False
    change = world.do("compact", compacting(0), until=puts_table)
    world.catalog_away = True
    world.step(change, "timeout, not done")
    world.run(change)
    world.do("Z", recovering(0))


def table_behind_when_a_commit_is_rolled_back(world: World) -> None:
    """C14: a user rolls back what is pending in an hour that has garbage."""
    landed_in_a_table(world)
    world.do("rewrite", rewriting(0))
    world.do("another", rewriting(0), until=completes).crash()
    world.do("rollback", lambda me: void(roll_back_by_hand(me.index, me.offsets, hour(0))))


# ------------------------------------------------------------------------------------------------------ at least once


def two_cleans(world: World) -> None:
    """A writer crashes when its objects are visible; a clean that looked at one waits while its name becomes free."""
    world.kafka.produce(0, 1, 2, 3, 4)
    a = world.start("A", materialise(0), chunk=9)
    world.run(a, until=lambda request: request.puts_tile is not None and bool(request.puts_tile.commits))
    a.crash()
    world.minute = 66
    z = world.start("Z", cleaning(later_days=2))
    if world.run(z, until=deletes_data):
        world.do("Y", cleaning(later_days=2))
        world.do("B", materialise(0), chunk=9)
        world.run(z)


def two_writers_of_a_key(world: World) -> None:
    """Two land the same offsets; the fenced one has written over the winner's object, and a clean follows."""
    a = landing(world, 4, until=completes)
    world.do("B", materialise(0))
    world.run(a)
    world.do("Z", cleaning(later_days=2))


# ------------------------------------------------------------------------------------------------------ rules taken out


def without_revision(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Tile, "revise", lambda tile, **changes: msgspec.structs.replace(tile, **changes))


def without_burnt(monkeypatch: pytest.MonkeyPatch) -> None:
    back = recovery.roll_commit_back
    monkeypatch.setattr(recovery, "roll_commit_back", lambda *given: msgspec.structs.replace(back(*given), burnt={}))


def without_inheritance(monkeypatch: pytest.MonkeyPatch) -> None:
    open_tile = tiles.open_tile
    monkeypatch.setattr(
        tiles, "open_tile", lambda *given, **named: msgspec.structs.replace(open_tile(*given, **named), burnt={})
    )


def aborting_on_any_error(monkeypatch: pytest.MonkeyPatch) -> None:
    commit = protocol.commit_attempt

    def tidied(index, attempt, staged):
        try:
            return commit(index, attempt, staged)
        except Exception:
            commit_files.abort_uploads(index.store, staged.files, index.pace)
            raise

    monkeypatch.setattr(protocol, "commit_attempt", tidied)


def without_fence(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clean looks at the tile once, and then deletes by the manifest."""
    doomed: list[str] = []

    def only_look(index, hour, commit):
        tile, _ = index.tile(hour)
        doomed[:] = [commit]
        return commit not in tile.commits and commit != tile.pending

    def remove_at_once(index, hour):
        manifest = index.manifest(hour, doomed[0])
        for file in manifest.files:
            commit_files.abort_and_delete_file(index.store, manifest, file)

    monkeypatch.setattr(clean_module, "fence_commit", only_look)
    monkeypatch.setattr(clean_module, "sweep_garbage", remove_at_once)


def without_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commit_files, "belongs_to_commit", lambda *_: True)


def without_keeping_manifests(monkeypatch: pytest.MonkeyPatch) -> None:
    clean = clean_module.clean_index
    monkeypatch.setattr(clean_module, "clean_index", lambda index, **named: clean(index, **{**named, "keep_ms": 0}))


def without_suffix(monkeypatch: pytest.MonkeyPatch) -> None:
    attempt = protocol.create_attempt
    monkeypatch.setattr(
        replacing, "create_attempt", lambda *given, **named: attempt(*given, **{**named, "renamed": False})
    )


def without_queueing_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recovery, "fence_commit", lambda *_: None)


def without_queueing_what_is_queued(monkeypatch: pytest.MonkeyPatch) -> None:
    fence = recovery.fence_commit

    def wanting(index: TopicIndex, hour: str, commit: str) -> bool:
        stored = index.tile(hour)
        return bool(stored and commit in stored[0].garbage) or fence(index, hour, commit)

    monkeypatch.setattr(recovery, "fence_commit", wanting)


def tidying_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever has swept takes the tile as it is then."""

    def tidy(index, hour):
        settled = recovery.settle_pending_commit(index, hour)
        return recovery.sweep_garbage(index, hour) if settled and settled[0].garbage else settled

    monkeypatch.setattr(recovery, "settle_and_sweep_hour", tidy)


def without_counting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "require_no_fewer_records", lambda *_: None)


def without_sweeping_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "sweep_garbage", lambda *_: None)


def without_extension(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiles, "add_partitions", lambda tile, *_: tile)


def rebasing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The writer takes whatever ETag the tile has when it gets there."""
    swap_tile = TopicIndex.swap_tile
    monkeypatch.setattr(
        TopicIndex, "swap_tile", lambda index, tile, _: swap_tile(index, tile, index.tile(tile.hour)[1])
    )


def closing_over_pending(monkeypatch: pytest.MonkeyPatch) -> None:
    def close(index, offsets, _head, hour, *_):
        while True:
            tile, etag = index.tile(hour)
            if tile.closed:
                return tile
            shut = tiles.close_tile(tile, offsets.snapshot(index.topic, hour))
            if index.swap_tile(shut, etag):
                return shut

    monkeypatch.setattr(open_and_close, "close_hour", close)


def without_topic_id(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_checks, "require_same_topic", lambda *_: None)


def without_since(monkeypatch: pytest.MonkeyPatch) -> None:
    begin = replacing.begin_rewrite
    monkeypatch.setattr(
        replacing,
        "begin_rewrite",
        lambda index, offsets, head, hour: begin(index, offsets, msgspec.structs.replace(head, since=None), hour),
    )


def following_in_vain(monkeypatch: pytest.MonkeyPatch) -> None:
    """The table is asked, and objects are deleted whatever it answers."""
    follow = TopicIndex.follow
    monkeypatch.setattr(TopicIndex, "follow", lambda index, *hours: void(follow(index, *hours)))


def without_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clean_module, "is_landed_by_others", lambda *_: True)


def without_sparing_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    replacing, remove = commit_files.replaces_object, commit_files.abort_and_delete_file

    def removing(*given):
        monkeypatch.setattr(commit_files, "replaces_object", lambda *_: False)
        remove(*given)
        monkeypatch.setattr(commit_files, "replaces_object", replacing)

    monkeypatch.setattr(recovery, "abort_and_delete_file", removing)


# ---------------------------------------------------------------------------------------------------------------- tests

DEFAULT = Circumstances()
LATE = Circumstances(late=True)
CONFLICTS = Circumstances(conflicts=True)


def play(trace: Trace, circumstances: Circumstances = DEFAULT, mute: tuple[str, ...] = ()) -> None:
    mode = AT_LEAST_ONCE.get(trace, "exactly once")
    with World(circumstances, mute=mute, mode=mode, dead_letters=trace in OF_TABLES) as world:
        trace(world)
        world.come_to_rest(random.Random(0))


OF_TABLES = [
    table_behind_a_rewrite_that_died,
    table_behind_a_rewrite,
    table_behind_a_merge,
    catalog_goes_after_the_switch_of_a_change,
    table_behind_when_a_commit_is_rolled_back,
    table_behind_a_manifest_that_is_old,
]
AT_LEAST_ONCE: dict[Trace, Mode] = {two_cleans: "at once", two_writers_of_a_key: "replacing"}
BROKEN: list[tuple[Trace, Rule, Circumstances, tuple[str, ...], str]] = [
    (rollback_zombie, without_burnt, DEFAULT, ("I7", "I8", "I2"), "I1"),
    (shed, without_inheritance, DEFAULT, ("I7", "I8", "I2"), "I1"),
    (timeout4, aborting_on_any_error, DEFAULT, ("I8",), "R4"),
    (aba, without_revision, DEFAULT, ("I5",), "I6"),
    (clean_live, without_fence, DEFAULT, ("I8", "I2"), "I1"),
    (clean_fenced, without_identity, DEFAULT, ("I8", "I2"), "I1"),
    (same_content, without_identity, DEFAULT, (), "I1"),
    (late_object, without_keeping_manifests, LATE, (), "I10"),
    (rewrite_crash, without_suffix, DEFAULT, (), "errors"),
    (rewrite_crash, without_suffix, Circumstances(overwrites=True), ("I2",), "I1"),
    (rewrite_twice, without_sweeping_replaced, DEFAULT, (), "I10"),
    (slow_complete, without_queueing_again, LATE, (), "I10"),
    (slow_recovery, without_queueing_again, LATE, (), "I10"),
    (swept_meanwhile, without_queueing_what_is_queued, LATE, (), "I10"),
    (swept_by_two, tidying_once, DEFAULT, (), "I6"),
    (rewrite_compacted, without_counting, DEFAULT, (), "rewrites"),
    (newpart_open, without_extension, DEFAULT, (), "I11"),
    (close_under_batch, rebasing, DEFAULT, (), "I5"),
    (close_over_pending, closing_over_pending, DEFAULT, (), "I4"),
    (close_recreated, without_topic_id, DEFAULT, (), "T10"),
    (rewrite_recreated, without_since, DEFAULT, ("REWRITES",), "I9"),
    (two_cleans, without_waiting, DEFAULT, ("I2",), "listed"),
    (two_writers_of_a_key, without_sparing_keys, DEFAULT, (), "listed"),
    # If the catalog is there all the time, it is enough to ask.
    *[(trace, following_in_vain, DEFAULT, (), "tables") for trace in OF_TABLES[1:]],
]
"""Traces, a rule that each needs, invariants that are not checked, and the one that breaks without the rule."""
HELD = [
    *dict.fromkeys((trace, circumstances) for trace, _, circumstances, *_ in BROKEN),
    *[(trace, DEFAULT) for trace in (lost4, boundary, two_hours, newpart, newpart2, create_dies, OF_TABLES[0])],
    *[(trace, CONFLICTS) for trace in (refused_manifest, refused_manifest_untruly, refused_manifest_of_rewrite)],
    *[(trace, CONFLICTS) for trace in (refused_step4, refused_tile)],
]


@pytest.mark.parametrize(("trace", "circumstances"), HELD)
def test_a_trace_keeps_every_invariant(trace: Trace, circumstances: Circumstances) -> None:
    play(trace, circumstances)


@pytest.mark.parametrize(("trace", "rule", "circumstances", "mute", "violated"), BROKEN)
def test_trace_breaks_without_its_rule(
    trace: Trace,
    rule: Rule,
    circumstances: Circumstances,
    mute: tuple[str, ...],
    violated: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rule(monkeypatch)
    with pytest.raises(Violation) as caught:
        play(trace, circumstances, mute)
    assert caught.value.invariant == violated, str(caught.value)
