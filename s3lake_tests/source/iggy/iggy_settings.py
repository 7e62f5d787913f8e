"""Configurations and connections for the server of tests."""

import uuid

from s3lake import hours
from s3lake.config import native
from s3lake.config.model import Config
from s3lake.demo.embedded_s3 import EmbeddedS3
from s3lake.source.iggy.iggy_connection import IggyConnection
from s3lake_tests.kit.lake import START
from s3lake_tests.source.iggy.server import PASSWORD, USER, IggyServer

HOUR = "2026-01-05T08"
START_US = hours.start_ms(HOUR) * 1000


def build_config(
    server: IggyServer, settings: str = "", topic: str = "shop.orders", s3: EmbeddedS3 | None = None
) -> Config:
    bucket = f"lake-{uuid.uuid4()}"
    text = (
        f"source: {{type: iggy, address: '{server.address}', transport: http, username: {USER}, "
        f"password: {PASSWORD}}}\n"
        f"sinks:\n  - {{name: events, topics: [{topic}], bucket: {bucket}, start: {START}, {settings}}}\n"
    )
    if s3 is not None:
        s3.create_bucket(bucket)
        keys = f"access_key_id: {s3.access_key_id}, secret_access_key: {s3.secret_access_key}"
        text += f"s3: {{endpoint_url: '{s3.endpoint_url}', credentials: {{{keys}}}}}\n"
    return native.load_text(text, "f")


def build_connection(server: IggyServer, **settings: str) -> IggyConnection:
    return IggyConnection(server.address, "http", **{"username": USER, "password": PASSWORD, **settings})
