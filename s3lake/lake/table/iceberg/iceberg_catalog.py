"""The catalog of a table, and its settings of S3."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from s3lake.errors import ConfigurationError
from s3lake.index.store import client
from s3lake.plugins import require_extra
from s3lake.text.masking import find_logins, is_secret

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.io.pyarrow import PyArrowFileIO

    from s3lake.index.store.s3_connection import S3Connection

NAME = "s3lake"
"""The default name of a catalog: a catalog of SQL stores tables under its name."""

_WAREHOUSE = ".tables"
_IDENTITIES = ("access-key-id", "role-arn", "profile-name", "anonymous")
Keys = Mapping[str, str]
"""Keys by pyiceberg's names without that of the service."""


def find_catalog_keys(connection: S3Connection) -> Keys:
    """Return the keys that the store signs with now; none if pyiceberg finds them where the store does.

    pyiceberg itself can neither use a profile for S3 nor assume a role as `s3.role` describes it.
    """
    named = connection.access_key_id, connection.profile, connection.source, connection.role_arn
    keys = client.find_access_keys(connection) if any(named) else None
    if keys is None:
        return {}
    texts = {"access-key-id": keys.access_key, "secret-access-key": keys.secret_key, "session-token": keys.token}
    return {name: text for name, text in texts.items() if text is not None}


def open_catalog(properties: Mapping[str, str], bucket: str, connection: S3Connection, keys: Keys) -> Catalog:
    """Open the catalog of a sink of this bucket, with these keys if it has none of its own.

    Raises:
        ConfigurationError: pyiceberg is not installed, or does not have a setting of the store.
    """
    if connection.ca_file is not None:
        raise ConfigurationError(
            "table: pyiceberg trusts the machine's certificates alone and knows no s3.ca_file: let the machine trust "
            "them and take it out, or go without a table"
        )
    with require_extra("iceberg", "an Iceberg table"):
        from pyiceberg.catalog import load_catalog
    settings = {
        "py-io-impl": "pyiceberg.io.pyarrow.PyArrowFileIO",
        # To a server of REST a warehouse is a name of its own.
        **({} if properties["type"] == "rest" else {"warehouse": f"s3://{bucket}/{_WAREHOUSE}"}),
        **_list_s3_settings(connection),
        **_name_keys("s3", keys, properties),
        **_list_glue_settings(properties, connection, keys),
        **properties,
    }
    return load_catalog(settings.pop("name", NAME), **settings)


def make_file_io(properties: Mapping[str, str], connection: S3Connection, keys: Keys) -> PyArrowFileIO:
    """Make the reader of a sink's files, with the sink's keys: a catalog may give keys for metadata only."""
    from pyiceberg.io.pyarrow import PyArrowFileIO

    own = {name: value for name, value in properties.items() if name.startswith(("s3.", "client."))}
    return PyArrowFileIO({**_list_s3_settings(connection), **_name_keys("s3", keys, own), **own})


def find_secrets(properties: Mapping[str, str], connection: S3Connection, keys: Keys) -> set[str]:
    """Return what no message may quote."""
    hidden = {value for name, value in [*properties.items(), *keys.items()] if is_secret(name)}
    return hidden.union(connection.secrets, *map(find_logins, properties.values()))


def _list_s3_settings(connection: S3Connection) -> dict[str, str]:
    created_with = {name: str(value) for name, value in connection.created_with}
    settings = {
        "s3.endpoint": connection.endpoint_url,
        "s3.region": connection.region,
        "s3.proxy-uri": connection.proxy,
        "s3.connect-timeout": str(connection.connect_timeout_s),
        "s3.request-timeout": str(connection.read_timeout_s),
        "s3.anonymous": "true" if connection.unsigned else None,
        "s3.force-virtual-addressing": None if connection.path_style else "true",
        "s3.server-side-encryption": created_with.get("ServerSideEncryption"),
        "s3.sse-kms-key-id": created_with.get("SSEKMSKeyId"),
    }
    return {name: value for name, value in settings.items() if value is not None}


def _name_keys(service: str, keys: Keys, properties: Mapping[str, str]) -> dict[str, str]:
    """Return the keys as properties of a service; none if the catalog's own properties name its user."""
    own = [name for name in properties if name.startswith((f"{service}.", "client."))]
    return {} if any(name.endswith(_IDENTITIES) for name in own) else {f"{service}.{n}": t for n, t in keys.items()}


def _list_glue_settings(properties: Mapping[str, str], connection: S3Connection, keys: Keys) -> dict[str, str]:
    if properties["type"] != "glue":
        return {}
    region = {"glue.region": connection.region} if connection.region is not None else {}
    return {**region, **_name_keys("glue", keys, properties)}
