"""A job of one op, which works for a whole sink."""

import dagster as dg


def job_of(
    op: dg.OpDefinition, *, name: str, description: str, partitions_def: dg.PartitionsDefinition[str] | None = None
) -> dg.JobDefinition:
    """A job that does `op`, in the process of its run: another one would cost more than most of what is done."""

    @dg.job(
        name=name,
        executor_def=dg.in_process_executor,
        partitions_def=partitions_def,
        description=description,
    )
    def job() -> None:
        op()

    return job
