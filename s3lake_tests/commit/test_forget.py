"""Manifests of what was replaced, when they are deleted on request: their keys may contain what is to be erased."""

import pytest

from s3lake.commit.clean import DAY_MS, forget_replaced
from s3lake.commit.documents import Manifest
from s3lake.commit.index import TopicIndex
from s3lake.plan.tile import Span, Tile
from s3lake.store import Store
from s3lake.store.memory import MemoryStore
from s3lake_tests.kit.stores import crash_everywhere

FIVE = "2026-11-20T05"


@pytest.fixture
def index() -> TopicIndex:
    return TopicIndex(MemoryStore(), ".indexes/events", "orders")


def hour(index: TopicIndex, *manifests: Manifest, **tile: object) -> None:
    """One whose last manifest is of its only commit."""
    for manifest in manifests:
        index.record(manifest)
    listed = {"commits": (manifests[-1].id,), **tile}
    index.create(index.tile_key(FIVE), Tile(FIVE, {0: Span(0, 5, 5)}, **listed))  # type: ignore[arg-type]


def manifest(commit: str, *replaces: str, reason: str = "", created_ms: int = 0) -> Manifest:
    return Manifest(commit, "orders", FIVE, {}, replaces=replaces, reason=reason, created_ms=created_ms)


def test_what_was_replaced_is_forgotten_where_a_commit_has_the_reason_whoever_replaced_it(index: TopicIndex):
    hour(index, manifest("a"), manifest("b", "a", reason="merge"), manifest("c", "b", reason="erase"))
    index.store.put(index.manifest_key(FIVE, "a").replace(".json", ".swept"), b"{}")
    forget_replaced(index, FIVE, "erase")

    assert list(index.store.list(f"{index.root}/{FIVE}/")) == [index.manifest_key(FIVE, "c")]


@pytest.mark.parametrize("state", [{"garbage": ("a",)}, {"pending": "c"}], ids=["garbage", "pending"])
def test_while_something_is_to_be_done_in_the_hour_everything_is_kept(state: dict[str, object], index: TopicIndex):
    hour(index, manifest("a"), manifest("b", "a", reason="erase"), **state)
    forget_replaced(index, FIVE, "erase")

    assert index.manifest_ids(FIVE) == ["a", "b"]


def test_a_listed_commit_that_an_attempt_was_to_replace_is_kept(index: TopicIndex):
    attempt = manifest("0", "b", reason="merge")
    listed = manifest("b", "a"), manifest("c", "y", reason="erase")
    hour(index, attempt, manifest("a"), manifest("y"), *listed, commits=("b", "c"))
    forget_replaced(index, FIVE, "erase")

    assert index.manifest_ids(FIVE) == ["0", "b", "c"]


def test_what_a_crashed_process_had_not_forgotten_yet_the_next_one_forgets(index: TopicIndex):
    hour(index, manifest("z"), manifest("b", "z", reason="merge"), manifest("c", "b", reason="erase"))
    assert isinstance(index.store, MemoryStore)

    def forget(store: Store) -> None:
        forget_replaced(TopicIndex(store, ".indexes/events", "orders"), FIVE, "erase")

    for place in crash_everywhere(index.store, forget):
        forget(index.store)
        assert index.manifest_ids(FIVE) == ["c"], place


@pytest.mark.parametrize(("age_ms", "kept"), [(DAY_MS - 1, ["a", "c"]), (DAY_MS, ["c"])])
def test_what_a_rewrite_replaced_young_is_left_to_clean(age_ms: int, kept: list[str], index: TopicIndex):
    young = manifest("a", created_ms=7)
    rewrite = manifest("b", "a", reason="rewrite", created_ms=7 + age_ms)
    hour(index, young, rewrite, manifest("c", "b", reason="erase"))
    forget_replaced(index, FIVE, "erase")

    assert index.manifest_ids(FIVE) == kept
