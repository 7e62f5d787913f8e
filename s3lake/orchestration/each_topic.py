"""What an op does for every topic of a sink: one that fails keeps no other from its turn."""

from collections.abc import Callable, Iterable

import dagster as dg

from s3lake.errors import S3LakeError


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
