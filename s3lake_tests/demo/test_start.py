"""The demo takes a configuration: its events have the fields that the configuration names."""

import pytest

from s3lake.demo.start import find_named_fields
from s3lake_tests.config.documents import load
from s3lake_tests.config.examples import CONFIGURATIONS


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        (
            "lenses: rolling window",
            {("metadata_id",): False, ("customer_id",): False, ("timestamp",): True},
        ),
        ("lenses: field with a dot", {("a.b",): False}),
        ("confluent: field", {("region",): False, ("event_type",): False}),
        ("iggy: readme", {}),
    ],
)
def test_the_events_have_the_fields_that_keys_and_transforms_name(
    name: str, fields: dict[tuple[str, ...], bool]
) -> None:
    assert find_named_fields(load(CONFIGURATIONS[name]).config.sinks) == fields
