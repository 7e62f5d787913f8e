"""What s3lake uses of Dagster and Dagster does not document works in the version that is installed."""

import inspect
import logging
from typing import Any

import dagster as dg
import pytest
from dagster_shared.serdes.serdes import serialize_value

from s3lake.orchestration import private_dagster
from s3lake.orchestration.overlapping_hours import OverlappingHours
from s3lake.orchestration.private_dagster import read_logged_message

CHANGE = f"Dagster {dg.__version__} is another one: change s3lake/orchestration/private_dagster.py"


@pytest.mark.parametrize(
    "method", ["get_upstream_mapped_partitions_result_for_partitions", "validate_partition_mapping"]
)
def test_a_partition_mapping_gets_what_dagster_passes(method: str) -> None:
    parameters = list(inspect.signature(getattr(dg.AllPartitionMapping, method, print)).parameters)

    assert list(inspect.signature(getattr(OverlappingHours, method)).parameters) == parameters, CHANGE


def test_a_mapping_is_sent_as_its_base_class() -> None:
    assert serialize_value(OverlappingHours()) == serialize_value(dg.AllPartitionMapping()), CHANGE


def test_the_subsets_of_hours_are_subsets_of_dagster() -> None:
    hourly = dg.HourlyPartitionsDefinition("2026-01-01-00:00")
    subset = hourly.subset_with_partition_keys(["2026-01-01-05:00"])

    assert isinstance(subset, private_dagster.TimeWindowPartitionsSubset), CHANGE
    assert isinstance(subset, private_dagster.PartitionsSubset), CHANGE


def test_the_message_of_a_run_is_distinguished_from_an_event() -> None:
    messages: list[str | None] = []

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            messages.append(read_logged_message(record))

    @dg.logger({})
    def listening(_: Any) -> logging.Logger:
        logger = logging.Logger("listening")
        logger.addHandler(Handler())
        return logger

    @dg.op
    def speak(context: dg.OpExecutionContext) -> None:
        context.log.info("four records")

    @dg.job(logger_defs={"listening": listening})
    def talk() -> None:
        speak()

    talk.execute_in_process(run_config={"loggers": {"listening": {}}})
    assert [message for message in messages if message is not None] == ["four records"], CHANGE
    assert None in messages, CHANGE
