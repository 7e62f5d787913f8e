"""The Spark session of a configuration as a resource of dagster-pyspark. The module is apart: it imports pyspark."""

from typing import TYPE_CHECKING, Any

from dagster_pyspark import LazyPySparkResource
from pydantic import Field, PrivateAttr

from s3lake.config import model
from s3lake.land.spark import get_session, open_spark

if TYPE_CHECKING:
    from s3lake.land.spark.opened_spark import OpenedSpark


class SparkResource(LazyPySparkResource):
    """A `dagster_pyspark.LazyPySparkResource` whose session is made as configured, when it is first used.

    It is one session a process: of a local or cluster master, or of Spark Connect (`sc://host:port`).
    `s3lake.resources` and `build_definitions` make it, under the key `s3lake_spark`.

    Attributes:
        spark_config: further settings of Spark; they win over the configuration's.
    """

    spark_config: dict[str, Any] = Field(default_factory=dict)
    _settings: model.Spark | None = PrivateAttr(default=None)

    @property
    def spark_session(self) -> Any:
        """The session of this process, which is made when it is first used."""
        return get_session(self._read_settings())

    @property
    def spark_context(self) -> Any:
        """The context of the session. Spark Connect has none."""
        return self.spark_session.sparkContext

    def open_spark(self) -> "OpenedSpark":
        """Return what landings run in: the session, or a context only, which is opened with less CPU."""
        if type(self).spark_session is not SparkResource.spark_session:
            return self.spark_session  # type: ignore[no-any-return]  # a subclass opens its own
        return open_spark(self._read_settings())

    def _read_settings(self) -> model.Spark:
        settings = self._settings or model.Spark()
        conf = {**settings.conf, **{name: str(value) for name, value in self.spark_config.items()}}
        return settings.model_copy(update={"conf": conf})


def make_spark_resource(settings: model.Spark) -> SparkResource:
    """Make the resource of a configuration's `spark` settings."""
    resource = SparkResource()
    resource._settings = settings  # a private attribute is set after the constructor; Dagster would store a field
    return resource
