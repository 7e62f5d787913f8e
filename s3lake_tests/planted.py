"""Configurations with a secret in every place that takes one. `<<its name>>` is a random word, another for each."""

import base64
import re
import secrets

from s3lake_tests.kit.http import Request, Response

NATIVE = """\
examples: true
kafka:
  bootstrap_servers: 127.0.0.1:1
  properties:
    {security.protocol: SASL_SSL, sasl.mechanism: PLAIN, sasl.username: me, sasl.password: "<<kafka password>>",
     ssl.key.password: "<<password of kafka's key>>", https.proxy: "http://me:<<kafka's proxy>>@127.0.0.1:1"}
s3:
  endpoint_url: <<server>>
  credentials:
    {access_key_id: AKIA, secret_access_key: "<<secret key>>", session_token: "<<session token>>"}
  proxy: {url: "<<server>>", user: me, password: "<<s3's proxy>>"}
  retries: {max_attempts: 1, patience: 0}
spark:
  conf:
    spark.hadoop.fs.s3a.secret.key: "<<spark's secret key>>"
    spark.driver.extraJavaOptions: "-Djavax.net.ssl.keyStorePassword=<<jvm option>>"
    spark.jars.repositories: "https://me:<<user of a repository>>@127.0.0.1:1"
sinks:
  - name: events
    topics: [orders]
    bucket: lake
    start: 2026-01-05T00
    converter: {value: avro, registry: {url: "<<server>>", user: me, password: "<<registry password>>"}}
    s3:
      endpoint_url: <<server>>
      credentials: {access_key_id: AKIA, secret_access_key: "<<secret key of a sink>>"}
      role: {arn: "arn:aws:iam::1:role/lake", external_id: "<<external id>>", endpoint_url: "<<server>>"}
      objects: {customer_key: "<<a key of 32 bytes>>"}
      proxy: {url: "<<server>>", user: me, password: "<<proxy of a sink>>"}
      retries: {max_attempts: 1, patience: 0}
  - name: columns
    topics: [orders]
    bucket: lake
    prefix: columns
    start: 2026-01-05T00
    format: {type: parquet}
    converter: {value: avro, registry: {url: "<<server>>", token: "<<registry token>>"}}
    table:
      name: lake.{topic}
      catalog:
        {type: rest, uri: "<<server>>", credential: "me:<<credential of the catalog>>", token: "<<catalog token>>",
         header.Authorization: "Bearer <<header of the catalog>>", header.X-Tenant: "<<other header>>",
         auth: '{"type": "basic", "basic": {"username": "me", "password": "<<json of the catalog>>"}}'}
    forwards:
      - {to: postgres, options: {conninfo: "host=127.0.0.1 port=1 user=me password=<<password of postgres>>"}}
      - {to: mongodb, options: {uri: "mongodb://127.0.0.1:1", username: me, password: "<<password of mongodb>>"}}
      - {to: elasticsearch, options: {url: "http://127.0.0.1:1", api_key: "<<key of elasticsearch>>"}}
"""
VARIABLES = """\
kafka: {bootstrap_servers: "127.0.0.1:1", properties: {sasl.password: "${VARIABLE}", sasl.username: "me-${PART}"}}
s3:
  endpoint_url: <<server>>
  credentials: {access_key_id: AKIA, secret_access_key: "${ANOTHER}"}
  retries: {max_attempts: 1, patience: 0}
sinks:
  - {name: events, topics: [orders], bucket: lake, start: 2026-01-05T00}
"""
CONNECT = """\
kafka: {bootstrap_servers: "127.0.0.1:1"}
spark: {master: "sc://127.0.0.1:1/;token=<<token of Spark Connect>>"}
s3: {endpoint_url: <<server>>, credentials: {access_key_id: AKIA, secret_access_key: "<<secret key>>"}}
sinks:
  - {name: events, topics: [orders], bucket: lake, start: 2026-01-05T00}
"""
IGGY_SOURCE = """\
source: {type: iggy, address: "127.0.0.1:1", username: lake, password: "<<iggy password>>"}
s3: {endpoint_url: <<server>>, credentials: {access_key_id: AKIA, secret_access_key: "<<secret key>>"}}
sinks:
  - {name: events, topics: [shop.orders], bucket: lake, start: 2026-01-05T00}
"""
PLUGIN = """\
source:
  type: planted
  options:
    {port: 5, password: "<<option>>", login: {user: me, password: "<<option within>>", pin: 5},
     headers: [{Authorization: "<<option in a list>>"}], url: "http://me:<<user of an option>>@127.0.0.1:1"}
s3: {endpoint_url: <<server>>, credentials: {access_key_id: AKIA, secret_access_key: "<<secret key>>"}}
sinks:
  - {name: events, topics: [orders], bucket: lake, start: 2026-01-05T00}
"""
_WORKER = """\
bootstrap.servers=127.0.0.1:1
s3lake.start=2026-01-05T00
topics=orders
key.converter=org.apache.kafka.connect.storage.StringConverter
value.converter=io.confluent.connect.avro.AvroConverter
value.converter.schema.registry.url=<<server>>
value.converter.basic.auth.credentials.source=USER_INFO
value.converter.basic.auth.user.info=me:<<registry password>>
consumer.override.security.protocol=SASL_SSL
consumer.override.sasl.mechanism=PLAIN
consumer.override.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required \
username="me" password="<<jaas>>";
"""
LENSES = (
    "name=events\nconnector.class=io.lenses.streamreactor.connect.aws.s3.sink.S3SinkConnector\n"
    + _WORKER
    + """\
connect.s3.kcql=INSERT INTO lake:raw SELECT * FROM orders STOREAS `JSON`
connect.s3.custom.endpoint=<<server>>
connect.s3.aws.auth.mode=Credentials
connect.s3.aws.access.key=AKIA
connect.s3.aws.secret.key=<<secret key>>
"""
)
CONFLUENT = (
    "name=events\nconnector.class=io.confluent.connect.s3.S3SinkConnector\n"
    + _WORKER
    + """\
s3.bucket.name=lake
format.class=io.confluent.connect.s3.format.json.JsonFormat
flush.size=1000
store.url=<<server>>
aws.access.key.id=AKIA
aws.secret.access.key=<<secret key>>
s3.proxy.url=<<server>>
s3.proxy.user=me
s3.proxy.password=<<proxy>>
s3.ssea.name=AES256
s3.sse.customer.key=<<a key of 32 bytes>>
"""
)
AIVEN = (
    "name=events\nconnector.class=io.aiven.kafka.connect.s3.AivenKafkaConnectS3SinkConnector\n"
    + _WORKER
    + """\
aws.s3.bucket.name=lake
aws.s3.endpoint=<<server>>
aws.access.key.id=AKIA
aws.secret.access.key=<<secret key>>
format.output.type=jsonl
"""
)
IGGY = """\
type = "sink"
key = "events"
enabled = true
path = "libiggy_connector_s3_sink"
[[streams]]
stream = "shop"
topics = ["orders"]
schema = "json"
[plugin_config]
bucket = "lake"
region = "us-east-1"
endpoint = "<<server>>"
access_key_id = "AKIA"
secret_access_key = "<<secret key>>"
[s3lake]
start = "2026-01-05T00"
"""
PLACES = {
    "native.yaml": NATIVE,
    "variables.yaml": VARIABLES,
    "connect.yaml": CONNECT,
    "iggy.yaml": IGGY_SOURCE,
    "plugin.yaml": PLUGIN,
    "lenses.properties": LENSES,
    "confluent.properties": CONFLUENT,
    "aiven.properties": AIVEN,
    "iggy.toml": IGGY,
}
DESTINATIONS: list[tuple[str, dict[str, str]]] = [
    ("postgres", {"conninfo": "host=127.0.0.1 port=1 user=me password=<<postgres password>>"}),
    ("postgres", {"conninfo": "postgresql://me:<<password of an address>>@127.0.0.1:1/lake"}),
    ("postgres", {"conninfo": "<<password alone>> host"}),
    ("mongodb", {"uri": "mongodb://me:<<mongodb password>>@127.0.0.1:1"}),
    ("mongodb", {"uri": "mongodb://127.0.0.1:1", "username": "me", "password": "<<mongodb password apart>>"}),
    ("mongodb", {"uri": "mongodb://me:<<password of no address>>@127.0.0.1:x"}),
    ("elasticsearch", {"url": "<<server>>", "api_key": "<<api key>>"}),
    ("elasticsearch", {"url": "<<server>>", "username": "me", "password": "<<elasticsearch password>>"}),
    ("elasticsearch", {"url": "http://127.0.0.1:1", "api_key": "<<api key of no server>>"}),
    ("quickwit", {"url": "<<server>>", "token": "<<token>>"}),
    ("quickwit", {"url": "<<server>>", "username": "me", "password": "<<quickwit password>>"}),
    ("elasticsearch", {"url": "http://me:<<user of a url>>@127.0.0.1:1"}),
]
"""What hours are forwarded to, and what it is made with."""
ENVIRONMENT = {
    "VARIABLE": "<<variable>>",
    "PART": "public",
    "ANOTHER": "<<another variable>>",
    "IGGY_CONNECTORS_IGGY_ADDRESS": "127.0.0.1:1",
    "IGGY_CONNECTORS_IGGY_USERNAME": "lake",
    "IGGY_CONNECTORS_IGGY_PASSWORD": "<<variable of iggy's runtime>>",
}
"""What `VARIABLES` refers to, and the environment of Iggy's runtime."""
RECORD = b'{"id": 1, "login": {"password": "<<field of a record>>"}, "token": "<<field called token>>"'
"""No JSON, so that it is refused, and shown."""
PLACE = re.compile(r"<<([^>]+)>>")


class Words:
    """The words that were planted, by their places."""

    def __init__(self, server: str) -> None:
        self._server = server
        self.planted: dict[str, str] = {}

    def plant(self, text: str) -> str:
        """The text with a word in each of its places."""
        return PLACE.sub(lambda place: self._word(place[1]), text)

    def _word(self, place: str) -> str:
        if place == "server":
            return self._server
        if place not in self.planted:
            of_32_bytes = base64.b64encode(secrets.token_bytes(32)).decode()
            self.planted[place] = of_32_bytes if "32 bytes" in place else f"PLANT{secrets.token_hex(8)}"
        return self.planted[place]

    def seen(self, shown: str) -> list[str]:
        """Return the places whose words are in a text, as they are or in base64, as HTTP carries a login."""
        return sorted(
            place
            for place, word in self.planted.items()
            if word in shown or base64.b64encode(f"me:{word}".encode()).decode() in shown
        )


def repeat_request(request: Request) -> Response:
    """Refuse a request with all that it contains."""
    message = "\n".join([request.target, *map(": ".join, request.headers.items()), request.body.decode("latin-1")])
    message = message.replace("<", "").replace("&", "").replace("\n", " ")
    error = f"<Error><Code>SignatureDoesNotMatch</Code><Message>{message}</Message></Error>"
    return Response(403, error.encode(), {"Content-Type": "application/xml"})
