"""The S3 of a configuration as a resource of dagster-aws. The module is apart because it imports boto3."""

from typing import Any

import dagster_aws.s3
from pydantic import PrivateAttr

from s3lake.config import model
from s3lake.index.store.client import make_client
from s3lake.index.store.s3_connection import S3Connection


class S3Resource(dagster_aws.s3.S3Resource):
    """A `dagster_aws.s3.S3Resource` that reaches S3 as configured: with its role, proxy and encryption.

    `s3lake.resources` and `build_definitions` make it, under the key `s3lake_s3`. Its fields have no keys and tokens:
    Dagster shows and stores fields.
    """

    _settings: model.S3 | None = PrivateAttr(default=None)

    @property
    def connection(self) -> S3Connection:
        """The connection of the settings, else of the fields of dagster-aws."""
        return (
            S3Connection.from_resource(self) if self._settings is None else S3Connection.from_settings(self._settings)
        )

    def get_client(self) -> Any:
        """Return a boto3 client."""
        connection = self.connection
        return make_client(connection, connection.max_attempts)

    def get_object_to_set_on_execution_context(self) -> "S3Resource":
        """Return the resource itself: dagster-aws would make a client for each step, which costs 0.16 s of CPU."""
        return self


def open_s3(settings: model.S3) -> S3Resource:
    """Make the resource of a configuration's `s3` settings."""
    resource = S3Resource(
        region_name=settings.region,
        endpoint_url=settings.endpoint_url,
        profile_name=settings.profile,
        max_attempts=settings.retries.max_attempts,
    )
    resource._settings = settings  # a private attribute is set after the constructor; Dagster would store a field
    return resource
