"""What an op does for every topic of a sink: one that fails keeps no other from its turn."""

from collections.abc import Callable, Iterable, Sequence

import dagster as dg

from s3lake.errors import S3LakeError
from s3lake.orchestration.catalogue import Catalogue
from s3lake.sink import Sink


def topics_asked(catalogue: Catalogue, sink: Sink, asked: Sequence[str]) -> Sequence[str]:
    """The topics of run config: all of `sink` where it names none.

    Raises:
        Failure: one is none of the sink's.
    """
    unknown = sorted(set(asked) - set(catalogue.topics[sink.name]))
    if unknown:
        raise dg.Failure(f"{unknown[0]!r} is no topic of sink {sink.name}", allow_retries=False)
    return asked or catalogue.topics[sink.name]


def each_topic(
    context: dg.OpExecutionContext, topics: Iterable[str], work: Callable[[str], None], *, allow_retries: bool
) -> None:
    """Do it for each.

    Raises:
        Failure: one or more failed, of which the first is told; the log has them all.
    """
    failed: list[S3LakeError] = []
    for topic in topics:
        try:
            work(topic)
        except S3LakeError as error:
            context.log.error(f"topic {topic}: {error}")
            failed.append(error)
    if failed:
        raise dg.Failure(str(failed[0]), allow_retries=allow_retries) from failed[0]
