"""Sentences that a red check of an hour shows: what is wrong, in numbers that people read, and the remedy."""

from collections.abc import Iterable, Mapping, Sequence

from s3lake.config.model import Sink
from s3lake.index.commit.dead_letter_reasons import merge_reasons
from s3lake.index.commit.documents import Manifest
from s3lake.index.plan.tile import Sums, Tile
from s3lake.text.quantities import format_wait

_REASONS = 3
"""Reasons of dead letters that a sentence has at most."""


def explain_offsets(tile: Tile, gaps: Mapping[str, Mapping[str, int]], waiting: int, ahead: Sequence[str]) -> str:
    """Explain why `offsets_contiguous` is red, the gravest cause first.

    Args:
        tile: the hour as it is landed.
        gaps: the offsets between two hours by topic-partition, for each pair of hours; negative if both have them.
        waiting: the offsets in Kafka of an hour that no run has landed.
        ahead: lines about records that are stamped ahead of their time.
    """
    sentences: list[str] = []
    for pair, by_partition in gaps.items():
        for number, gap in by_partition.items():
            place = "in none of the hours" if gap > 0 else "in both hours"
            if gap:
                sentences.append(f"{pair}: topic-partition {number} has {count_things(abs(gap), 'offset')} {place}.")
    if sentences:
        sentences.append("Run `s3lake verify` of these hours.")
    if tile.closed and not tile.complete:
        left = sum((span.end or 0) - span.committed for span in tile.partitions.values())
        state = f"{count_with_verb(left, 'offset')} not landed" if left else "its last commit is not complete"
        sentences.append(f"The hour is closed, and {state}: materialize it.")
    if waiting:
        sentences.append(
            f"Kafka has {count_things(waiting, 'offset')} of the hour, and no run has landed them: materialize it."
        )
    return " ".join([*sentences, *ahead])


def explain_rows(offsets: int, sums: Sums, without_record: int) -> str:
    """Explain why `rows_equal_offsets` is red."""
    rows = f"{count_things(sums.landed, 'row')} and {count_things(sums.dead, 'dead letter')}"
    return (
        f"{count_with_verb(offsets, 'offset')} landed, with {count_things(sums.read, 'record')}. Of them the "
        f"files have {rows}; {sums.skipped:,} were skipped, {sums.filtered:,} filtered. Offsets without a "
        f"record: {without_record:,}. That does not add up: run `s3lake verify` of the hour."
    )


def explain_lag(behind: int, patience_s: float) -> str:
    """Explain why `lag` is red."""
    return (
        f"{count_with_verb(behind, 'record')} not landed, and the oldest has waited for more than "
        f"{format_wait(patience_s)}, twice flush.interval. Look at the sensor's last tick and the last run."
    )


def explain_dead_letters(sink: Sink, sums: Sums, manifests: Iterable[Manifest], dead_letters_asset: str) -> str:
    """Explain why `dead_letters` is red, with the most frequent reasons."""
    threshold = sink.errors.threshold
    most = 0 if threshold.number is None and threshold.share is None else threshold.number
    allowed = [] if most is None else [f"{most:,}"]
    allowed += [] if threshold.share is None else [f"{threshold.share:.2%}"]
    reasons = sorted(merge_reasons(one.refusal_reasons for one in manifests), key=lambda reason: -reason.count)
    listed = "; ".join(f"{reason.count} in stage {reason.stage}: {reason.reason}" for reason in reasons[:_REASONS])
    share = f" ({sums.dead / sums.read:.2%})" if sums.read else ""
    refused = f"{count_with_verb(sums.dead, 'record')} refused, of {sums.read:,}{share}"
    return (
        f"{refused}; errors.threshold allows {' and '.join(allowed)}.{f' {listed}.' if listed else ''} "
        f"The asset {dead_letters_asset} has their places."
    )


def count_things(number: int, name: str) -> str:
    """Return a number with what it counts: `1 offset`, `2 offsets`."""
    return f"{number:,} {name}{'' if number == 1 else 's'}"


def count_with_verb(number: int, name: str) -> str:
    """Return a number with what it counts, and the verb: `1 offset is`, `2 offsets are`."""
    return f"{count_things(number, name)} {'is' if number == 1 else 'are'}"
