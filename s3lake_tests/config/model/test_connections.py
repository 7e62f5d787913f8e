"""How Kafka and Spark are reached: what is an address, a property and a master."""

import re

import pytest
from pydantic import ValidationError

from s3lake.config.model import Kafka
from s3lake.config.model.connections import Spark


@pytest.mark.parametrize("servers", ["", "localhost", "a:1,,b:2", "a:1, b", "http://"])
def test_bootstrap_servers_are_hosts_with_ports(servers: str) -> None:
    with pytest.raises(ValidationError, match="HOST:PORT"):
        Kafka(bootstrap_servers=servers)


@pytest.mark.parametrize("servers", ["localhost:9092", "a:1, b:2", "[::1]:9092", "SASL_SSL://kafka.example:9093"])
def test_usual_bootstrap_servers_are_accepted(servers: str) -> None:
    assert Kafka(bootstrap_servers=servers).bootstrap_servers == servers


@pytest.mark.parametrize("name", ["group.id", "isolation.level", "enable.auto.commit", "bootstrap.servers"])
def test_properties_that_s3lake_sets_itself_are_refused(name: str) -> None:
    with pytest.raises(ValidationError, match="is set by s3lake"):
        Kafka(bootstrap_servers="a:1", properties={name: "x"})


@pytest.mark.parametrize(
    "master",
    [
        *("local", "local[*]", "local[2, 3]", "local-cluster[2,1,1024]", "yarn", "spark://a:7077,b:7077"),
        *("k8s://https://kube:6443", "sc://spark:15002/;use_ssl=true", "own-manager://here"),
    ],
)
def test_a_master_that_spark_or_a_plugin_of_it_knows_is_accepted(master: str) -> None:
    assert Spark(master=master).master == master


@pytest.mark.parametrize("master", ["", "locl[*]", "local[]", "local[x]", "Yarn", "spark:7077", "sc://"])
def test_another_master_is_refused(master: str) -> None:
    with pytest.raises(ValidationError, match=re.escape(f"{master!r} is not a master of Spark: write local[N]")):
        Spark(master=master)


def test_a_token_in_an_invalid_master_is_masked() -> None:
    with pytest.raises(ValidationError) as refused:
        Spark(master="sc:spark/;token=hush")
    assert "hush" not in str(refused.value.errors(include_input=False))
