"""A program: what Spark's own Iceberg reads of a table, and then does to it, as another program would.

Given a document on standard input, it prints one: counts of every snapshot, rows, and what maintenance returned.
"""

import json
import os
import sys
from typing import Any

from pyspark.sql import SparkSession


def main(asked: dict[str, Any]) -> dict[str, Any]:
    settings = {
        "spark.jars": ",".join(asked["jars"]),
        "spark.ui.enabled": "false",
        "spark.driver.memory": "512m",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.s3lake": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.s3lake.type": "jdbc",
        "spark.sql.catalog.s3lake.uri": f"jdbc:sqlite:{asked['database']}",
        "spark.sql.catalog.s3lake.jdbc.schema-version": "V1",
        "spark.sql.catalog.s3lake.warehouse": f"s3://{asked['bucket']}/.tables",
        "spark.sql.catalog.s3lake.io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
        "spark.sql.catalog.s3lake.s3.endpoint": asked["endpoint"],
        "spark.sql.catalog.s3lake.s3.path-style-access": "true",
        "spark.sql.catalog.s3lake.s3.access-key-id": asked["key"],
        "spark.sql.catalog.s3lake.s3.secret-access-key": asked["secret"],
        "spark.sql.catalog.s3lake.client.region": "us-east-1",
    }
    builder = SparkSession.builder.master("local[1]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    table = "s3lake.lake.orders"

    def first(statement: str) -> Any:
        return spark.sql(statement).collect()[0][0]

    listed = spark.sql(f"SELECT snapshot_id FROM {table}.snapshots ORDER BY committed_at").collect()
    texts = spark.sql(f"SELECT to_json(struct(*)) FROM {table} ORDER BY id").collect()
    answer: dict[str, Any] = {
        "counts": [first(f"SELECT count(*) FROM {table} VERSION AS OF {snapshot}") for (snapshot,) in listed],
        "rows": [json.loads(text) for (text,) in texts],
        "hour": first(f"SELECT count(*) FROM {table} WHERE landed_hour = TIMESTAMP '{asked['moment']}'"),
        "compacted": first(
            "CALL s3lake.system.rewrite_data_files(table => 'lake.orders', options => map('rewrite-all', 'true'))"
        ),
    }
    for name, procedure in {
        "expired": "expire_snapshots(table => 'lake.orders', older_than => TIMESTAMP '2100-01-01 00:00:00')",
        "orphans": "remove_orphan_files(table => 'lake.orders')",
    }.items():
        try:
            spark.sql(f"CALL s3lake.system.{procedure}").collect()
            answer[name] = "done"
        except Exception as error:
            answer[name] = str(error)
    spark.stop()
    return answer


if __name__ == "__main__":
    os.environ["PYSPARK_PYTHON"] = sys.executable
    print("\n" + json.dumps(main(json.load(sys.stdin))))
