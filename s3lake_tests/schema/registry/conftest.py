from collections.abc import Iterator

import pytest

from s3lake_tests.schema.registry.apicurio import Apicurio, running


@pytest.fixture(scope="package")
def apicurio() -> Iterator[Apicurio]:
    """A real registry for all files beside this one: it takes ten seconds to start."""
    with running() as registry:
        yield registry
