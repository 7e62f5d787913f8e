"""`times` of a converter: one setting, which was the registry's before."""

from typing import Any

import pytest
from pydantic import ValidationError

from s3lake_tests.kit.sinks import make_sink

REGISTRY = {"url": "http://registry:8081"}


@pytest.mark.parametrize(
    "converter",
    [
        {"value": "avro", "times": "exact", "registry": REGISTRY},
        {"value": "avro", "registry": {**REGISTRY, "times": "exact"}},
        {"value": "avro", "times": "exact", "registry": {**REGISTRY, "times": "exact"}},
    ],
)
def test_the_times_of_a_converter_mean_the_same_in_both_places(converter: dict[str, Any]) -> None:
    found = make_sink(converter=converter).converter
    assert found.times == "exact"
    assert found.registry is not None
    assert found.registry.connection.exact


def test_no_registry_is_needed() -> None:
    assert make_sink(converter={"value": "connect_json", "times": "exact"}).converter.times == "exact"


def test_two_places_that_differ_are_refused() -> None:
    converter = {"value": "avro", "times": "connect", "registry": {**REGISTRY, "times": "exact"}}
    with pytest.raises(ValidationError, match=r"give converter\.times alone"):
        make_sink(converter=converter)
