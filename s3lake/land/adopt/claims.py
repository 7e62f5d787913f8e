"""What each source says of where a topic-partition goes on, and which of it counts. Pure rules over offsets."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Literal

from s3lake.errors import ConfigurationError

Source = Literal["index", "group", "objects"]
SOURCES: tuple[Source, ...] = ("index", "group", "objects")
"""In order of trust: where several say the same, the first of them is named."""


@dataclass(frozen=True)
class Claim:
    """What one source says of one topic-partition.

    Attributes:
        next: first offset that has not landed, if this source is trusted; None where it cannot be told from it alone.
        low: it cannot be lower than that.
        high: it cannot be higher than that; None for no bound.
        note: what has to be known of it.
    """

    source: Source
    next: int | None
    low: int
    high: int | None
    note: str = ""

    @property
    def certain(self) -> bool:
        """Whether it leaves no doubt by itself."""
        return self.next is not None and self.low == self.high

    def __str__(self) -> str:
        if self.certain:
            return str(self.next)
        if self.high is None:
            return f"{self.low} or more"
        return f"{self.low} to {self.high}" if self.low else f"up to {self.high}"


def exact(source: Source, next: int, note: str = "") -> Claim:
    """A source that leaves no doubt."""
    return Claim(source, next, next, next, note)


@dataclass(frozen=True)
class Evidence:
    """What was found of one topic.

    Attributes:
        claims: per topic-partition, in order of trust.
        log: log start and last stable offset of each topic-partition that Kafka has.
        running: why the connector is taken to be running still; empty where it has stopped.
        places: where was looked, for people.
    """

    topic: str
    claims: Mapping[int, tuple[Claim, ...]]
    log: Mapping[int, tuple[int, int]]
    running: str = ""
    places: Mapping[Source, str] = field(default_factory=dict)

    @property
    def partitions(self) -> list[int]:
        """Every topic-partition that Kafka has or a source speaks of."""
        return sorted({*self.log, *self.claims})

    def claim(self, partition: int, source: Source) -> Claim | None:
        """What `source` says of `partition`."""
        return next((one for one in self.claims.get(partition, ()) if one.source == source), None)


@dataclass(frozen=True)
class Start:
    """Where a topic-partition goes on, and who says so; `log start` where nobody does."""

    offset: int
    source: Source | Literal["log start"]


def decide(evidence: Evidence, trust: Source | None = None) -> dict[int, Start]:
    """Where each topic-partition goes on.

    One source that leaves no doubt is enough, and so are several that leave one offset together. A topic-partition
    that nobody speaks of begins at its log start.

    Args:
        evidence: what was found.
        trust: the source that counts where it says anything, whatever the others say.

    Raises:
        ConfigurationError: nobody speaks of the topic at all, or the sources contradict each other or leave doubt; the
            message has what each says.
    """
    if not any(evidence.claims.values()) and any(end > low for low, end in evidence.log.values()):
        looked = "".join(f"\n  {source}: {place}" for source, place in evidence.places.items())
        raise ConfigurationError(
            f"topic {evidence.topic}: nothing of a connector was found, though the topic has records. Looked at:"
            f"{looked}\nCorrect the connector's name, bucket or prefix; to land the topic without a connector before "
            "it, do not adopt it"
        )
    starts: dict[int, Start] = {}
    contradicted, doubtful = [], []
    for partition in evidence.partitions:
        claims = evidence.claims.get(partition, ())
        trusted = [one for one in claims if one.source == trust]
        offset = trusted[0].next if trusted else _common(claims)
        if not claims:
            starts[partition] = Start(evidence.log[partition][0], "log start")
        elif offset is not None:
            named = [one for one in trusted or claims if one.next == offset] or claims
            starts[partition] = Start(offset, named[0].source)
        elif _contradict(claims) and not trusted:
            contradicted.append(partition)
        else:
            doubtful.append(partition)
    if contradicted or doubtful:
        raise ConfigurationError(_refusal(evidence, contradicted, doubtful))
    return starts


def _common(claims: Sequence[Claim]) -> int | None:
    """The one offset that every claim allows, if at least one of them could say it by itself."""
    if not any(one.next is not None for one in claims):
        return None
    low, high = _allowed(claims)
    return low if low == high else None


def _contradict(claims: Sequence[Claim]) -> bool:
    low, high = _allowed(claims)
    return high is not None and low > high


def _allowed(claims: Sequence[Claim]) -> tuple[int, int | None]:
    return max(one.low for one in claims), min((one.high for one in claims if one.high is not None), default=None)


def _refusal(evidence: Evidence, contradicted: Sequence[int], doubtful: Sequence[int]) -> str:
    trouble = "contradict each other" if contradicted else "leave doubt"
    partitions = sorted([*contradicted, *doubtful])
    claims = list(chain.from_iterable(evidence.claims[partition] for partition in partitions))
    sure = {one.source for one in claims if one.next is not None}
    useful = [source for source in SOURCES if source in sure]
    notes = [f"partition {partition}, {one.source}: {one.note}" for partition, one in _noted(evidence, partitions)]
    remedy = (
        f"Say which to trust: --trust {' or --trust '.join(useful)}. One that is too low lands records twice, one that "
        "is too high leaves a gap"
        if useful
        else "No source can be trusted by itself here: do what the notes say, then adopt again"
    )
    return "\n".join(
        [
            f"topic {evidence.topic}: the sources {trouble} about where to go on",
            *table(evidence, partitions),
            *notes,
            remedy,
        ]
    )


def _noted(evidence: Evidence, partitions: Iterable[int]) -> list[tuple[int, Claim]]:
    return [(partition, one) for partition in partitions for one in evidence.claims[partition] if one.note]


def table(evidence: Evidence, partitions: Iterable[int] | None = None) -> list[str]:
    """What each source says, a line per topic-partition, as text in columns."""
    lines = [["partition", *SOURCES, "log"]]
    for partition in evidence.partitions if partitions is None else partitions:
        claims = [evidence.claim(partition, source) for source in SOURCES]
        log = evidence.log.get(partition)
        lines.append(
            [str(partition), *(str(one) if one else "-" for one in claims), f"{log[0]} to {log[1]}" if log else "gone"]
        )
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return ["  ".join(map(str.ljust, line, widths)).rstrip() for line in lines]
