"""The resources of a configuration: dagster-aws's and dagster-pyspark's, for the assets of a project too."""

from typing import Any
from unittest.mock import Mock

import dagster as dg
import dagster_aws.s3
import pytest
from dagster_pyspark import LazyPySparkResource

import s3lake
from s3lake.config import native
from s3lake.config.model import Config
from s3lake.errors import ConfigurationError
from s3lake.orchestration import spark_resource
from s3lake.orchestration.build import build_definitions, define_resources
from s3lake.orchestration.catalog import Catalog
from s3lake.orchestration.resource_connections import find_s3_connection, open_spark_of_run
from s3lake.orchestration.s3_resource import open_s3

TEXT = """\
kafka: {bootstrap_servers: "127.0.0.1:1"}
s3:
  endpoint_url: "http://127.0.0.1:1"
  region: eu-west-1
  credentials: {access_key_id: AKIA, secret_access_key: hunter2}
  objects: {encryption: "aws:kms", kms_key_id: alias/lake}
spark: {master: "local[3]", conf: {spark.app.name: lake}}
sinks: [{name: events, topics: [orders], bucket: lake, start: 2026-01-05T08}]
"""


@pytest.fixture
def config() -> Config:
    return native.load_text(TEXT, "test.yaml")


def materialise(asset: dg.AssetsDefinition, **resources: object) -> bool:
    with dg.DagsterInstance.ephemeral() as instance:
        return dg.materialize([asset], resources=resources, instance=instance, raise_on_error=False).success


@pytest.mark.parametrize("annotation", [s3lake.S3Resource, dagster_aws.s3.S3Resource], ids=["ours", "dagster-aws's"])
def test_an_asset_of_the_project_gets_our_s3_with_all_settings_of_the_configuration(
    annotation: Any, config: Config
) -> None:
    found: list[Any] = []

    @dg.asset
    def report(s3lake_s3: annotation) -> None:
        found.append(s3lake_s3)

    assert materialise(report, **s3lake.resources(config))
    assert (found[0].region_name, found[0].endpoint_url) == ("eu-west-1", "http://127.0.0.1:1")
    assert found[0].connection.secret_access_key == "hunter2"
    assert dict(found[0].connection.created_with)["SSEKMSKeyId"] == "alias/lake"
    assert found[0].get_client().meta.region_name == "eu-west-1"


def test_an_asset_of_the_project_gets_our_session_when_it_first_uses_it(
    config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[Any] = []
    monkeypatch.setattr(spark_resource, "get_session", lambda settings: opened.append(settings) or "a session")
    before: list[int] = []

    @dg.asset
    def totals(s3lake_spark: s3lake.SparkResource) -> None:
        assert isinstance(s3lake_spark, LazyPySparkResource)
        before.append(len(opened))
        assert s3lake_spark.spark_session == "a session"

    assert materialise(totals, **s3lake.resources(config))
    assert before == [0]
    assert (opened[0].master, opened[0].conf) == ("local[3]", {"spark.app.name": "lake"})


def test_settings_of_a_spark_resource_win_over_those_of_the_configuration(
    config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = Mock()
    monkeypatch.setattr(spark_resource, "get_session", opened)
    mine = {"spark.app.name": "mine", "spark.ui.port": 4041}
    resource = spark_resource.make_spark_resource(config.spark).model_copy(update={"spark_config": mine})
    assert (resource.spark_session, resource.spark_context) == (opened(), opened().sparkContext)
    assert opened.call_args_list[0].args[0].conf == {"spark.app.name": "mine", "spark.ui.port": "4041"}


def test_a_landing_opens_a_context_with_the_settings_of_the_resource(
    config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[Any] = []
    monkeypatch.setattr(spark_resource, "open_spark", lambda settings: opened.append(settings) or "a context")
    resource = spark_resource.make_spark_resource(config.spark).model_copy(update={"spark_config": {"spark.a": 1}})
    assert resource.open_spark() == "a context"
    assert opened[0].conf == {**config.spark.conf, "spark.a": "1"}


def test_a_landing_takes_the_session_of_a_subclass_of_our_resource() -> None:
    class Theirs(s3lake.SparkResource):
        @property
        def spark_session(self) -> Any:
            return "their session"

    assert Theirs().open_spark() == "their session"


class TestOfTheProject:
    """A project's own resources, in place of ours."""

    @pytest.fixture
    def plain(self) -> Config:
        return native.load_text(TEXT.replace('  objects: {encryption: "aws:kms", kms_key_id: alias/lake}\n', ""), "a")

    @pytest.mark.parametrize("key", [None, "their_s3"], ids=["given", "by key"])
    def test_an_s3_resource_of_dagster_aws_is_landed_with(self, key: str | None, plain: Config) -> None:
        own = dagster_aws.s3.S3Resource(region_name="us-east-1", aws_access_key_id="ID", aws_secret_access_key="other")
        catalog = Catalog(plain, resources={"s3": key or own})
        project = {key: own} if key else {}  # and not the client that dagster-aws makes of it
        with dg.build_resources({**project, **define_resources(catalog)}) as resources:
            connection = find_s3_connection(resources, catalog)
        assert connection is not None
        assert (connection.region, connection.secret_access_key) == ("us-east-1", "other")

    def test_a_lazy_spark_resource_is_landed_with(self, plain: Config, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(LazyPySparkResource, "spark_session", "their session")
        own = LazyPySparkResource(spark_config={})
        catalog = Catalog(plain, resources={"spark": own})
        with dg.build_resources(define_resources(catalog)) as resources:
            assert open_spark_of_run(resources, catalog) == "their session"

    @pytest.mark.parametrize("own", ["their_s3", dagster_aws.s3.S3Resource()])
    def test_one_that_would_leave_out_settings_of_objects_is_refused(self, config: Config, own: object) -> None:
        with pytest.raises(ConfigurationError, match=r"does not know s3\.objects: take that out, set it at the sinks"):
            build_definitions(config, resources={"s3": own})


@pytest.mark.parametrize("name", ["s3", "spark"])
def test_a_sink_may_be_called_as_another_resource(name: str) -> None:
    built = build_definitions(native.load_text(TEXT.replace("name: events", f"name: {name}"), "test.yaml"))
    assert set(built.resources or ()) == {f"s3lake_{name}_io_manager", "s3lake_s3", "s3lake_spark"}


def test_no_secret_is_in_a_repr_or_a_field_of_a_resource(config: Config) -> None:
    definitions = s3lake.resources(config)
    s3 = open_s3(config.s3)
    assert "hunter2" not in repr([definitions, vars(definitions["s3lake_s3"]), s3, s3.model_dump(), str(s3)])
