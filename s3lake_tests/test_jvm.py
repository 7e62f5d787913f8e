"""Classes of Java that tests ask."""

import pytest

from s3lake_tests import jvm

pytestmark = [pytest.mark.usefixtures("jvm"), pytest.mark.slow("about the tests' own JVM")]


def test_what_java_throws_is_told_in_a_process_that_has_a_spark_session_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seen: a record that Connect refuses was asked about at Spark's JVM, and which test failed was chance."""
    from py4j import java_gateway
    from py4j.protocol import Py4JJavaError
    from pyspark.errors.exceptions.captured import capture_sql_exception

    monkeypatch.setattr(java_gateway, "get_return_value", capture_sql_exception(java_gateway.get_return_value))
    with jvm.running([]) as java, pytest.raises(Py4JJavaError, match="NumberFormatException"):
        java.Integer.parseInt("x")
