"""Catalogs that are servers, on free ports of 127.0.0.1, and their settings in a sink."""

import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from s3lake.demo.embedded_s3 import EmbeddedS3
from s3lake.land.spark.jars import pyspark_jars_dir, resolve
from s3lake_tests.kit import oracles
from s3lake_tests.kit.cost import PATIENCE_S
from s3lake_tests.lake.forwarding.servers import serve_postgres

ICEBERG = "1.11.0"
SPARK_JARS = (
    f"org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:{ICEBERG}",
    f"org.apache.iceberg:iceberg-aws-bundle:{ICEBERG}",
    "org.xerial:sqlite-jdbc:3.49.1.0",
)
_REST = (
    oracles.artifact("org.apache.iceberg", "iceberg-core", ICEBERG, "", "tests"),
    oracles.artifact("org.apache.iceberg", "iceberg-aws", ICEBERG),
    oracles.artifact("org.eclipse.jetty.ee10", "jetty-ee10-servlet", "12.1.1"),
)

Properties = dict[str, str]


@contextmanager
def rest(s3: EmbeddedS3) -> Iterator[Properties]:
    """What Iceberg tests its own clients against: its REST API over tables of the library, in SQLite and in memory."""
    warehouse = f"rest-{uuid.uuid4()}"
    s3.create_bucket(warehouse)
    classes = [
        *oracles.kept(f"iceberg-rest-{ICEBERG}", *_REST).glob("*.jar"),
        *pyspark_jars_dir().glob("hadoop-client-*"),
    ]
    classes += [jar for jar in resolve("iceberg", SPARK_JARS) if "spark-runtime" not in jar.name]
    with oracles.run_jvm(classes) as java:
        kept = {
            "catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog",
            "uri": f"jdbc:sqlite:file:{warehouse}?mode=memory&cache=shared",
            "jdbc.schema-version": "V1",
            "warehouse": f"s3://{warehouse}/tables",
            "io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
            "s3.endpoint": s3.endpoint_url,
            "s3.path-style-access": "true",
            "s3.access-key-id": s3.access_key_id,
            "s3.secret-access-key": s3.secret_access_key,
            "client.region": s3.region,
        }
        iceberg, jetty = java.org.apache.iceberg, java.org.eclipse.jetty
        adapter = iceberg.rest.RESTCatalogAdapter(iceberg.CatalogUtil.buildIcebergCatalog("rest", kept, None))
        context = jetty.ee10.servlet.ServletContextHandler()
        context.addServlet(jetty.ee10.servlet.ServletHolder(iceberg.rest.RESTCatalogServlet(adapter)), "/*")
        server = jetty.server.Server(java.java.net.InetSocketAddress("127.0.0.1", 0))
        server.setHandler(context)
        server.start()
        yield {"type": "rest", "uri": f"http://127.0.0.1:{server.getURI().getPort()}"}
        server.stop()


@contextmanager
def hive(home: Path) -> Iterator[Properties]:
    """The metastore that Spark brings, over Derby in memory; without a client of S3 it keeps metadata in `home`."""
    settings = {
        "javax.jdo.option.ConnectionURL": f"jdbc:derby:memory:{uuid.uuid4()};create=true",
        "datanucleus.schema.autoCreateAll": "true",
        "datanucleus.connectionPoolingType": "NONE",
        "hive.metastore.schema.verification": "false",
        "hive.metastore.warehouse.dir": f"file:{home}/warehouse",
        "derby.stream.error.field": "java.lang.System.err",
    }
    options = [f"-D{name}={value}" for name, value in settings.items()]
    with oracles.run_jvm([pyspark_jars_dir() / "*"], options) as java:
        hadoop, thrift = java.org.apache.hadoop, java.org.apache.thrift
        conf = hadoop.hive.conf.HiveConf()
        metastore = hadoop.hive.metastore
        metastore.txn.TxnDbUtil.prepDb(conf)  # the tables of its locks
        handler = getattr(metastore, "HiveMetaStore$HMSHandler")("s3lake", conf, False)
        processor = metastore.TSetIpAddressProcessor(
            metastore.HiveMetaStore.newRetryingHMSHandler(handler, conf, False)
        )
        socket = thrift.transport.TServerSocket(java.java.net.InetSocketAddress("127.0.0.1", 0))
        arguments: Any = getattr(thrift.server, "TThreadPoolServer$Args")(socket).processor(processor)
        server = thrift.server.TThreadPoolServer(arguments)
        serving = threading.Thread(target=server.serve, daemon=True)
        serving.start()
        yield {
            "type": "hive",
            "uri": f"thrift://127.0.0.1:{socket.getServerSocket().getLocalPort()}",
            "hive.hive2-compatible": "true",
        }
        server.stop()
        serving.join(PATIENCE_S)


@contextmanager
def postgres() -> Iterator[Properties]:
    """Debian's PostgreSQL."""
    with serve_postgres() as conninfo:
        words = dict(word.split("=") for word in conninfo.split())
        uri = "postgresql+psycopg2://{user}:{password}@{host}:{port}/{dbname}".format(**words)
        yield {"type": "sql", "uri": uri}
