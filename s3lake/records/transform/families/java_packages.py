"""The Java packages of published transforms, which their class names begin with."""

CONNECT = "org.apache.kafka.connect.transforms."
LENSES = "io.lenses.connect.smt.header."
DEBEZIUM = "io.debezium.transforms."
CONFLUENT = "io.confluent.connect.transforms."
AIVEN = "io.aiven.kafka.connect.transforms."
ICEBERG = ("org.apache.iceberg.connect.transforms.", "io.tabular.iceberg.connect.transforms.")
"""The package of Iceberg's sink, and its former one."""
CUSTENBORDER = "com.github.jcustenborder.kafka.connect.transform.common."
