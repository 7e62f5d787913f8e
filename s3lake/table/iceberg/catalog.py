"""The catalog of a table, and its settings of S3."""

from __future__ import annotations

from typing import TYPE_CHECKING

from s3lake.errors import ConfigurationError
from s3lake.text.masking import find_logins, is_secret

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyiceberg.catalog import Catalog
    from pyiceberg.io.pyarrow import PyArrowFileIO

    from s3lake.store.connection import S3Connection

NAME = "s3lake"
"""The default name of a catalog: a catalog of SQL stores tables under its name."""

_WAREHOUSE = ".tables"


def open_catalog(properties: Mapping[str, str], bucket: str, connection: S3Connection) -> Catalog:
    """Open the catalog of a sink of this bucket.

    Raises:
        ConfigurationError: pyiceberg is not installed, or does not have a setting of the store.
    """
    if connection.ca_file is not None:
        raise ConfigurationError(
            "table: pyiceberg trusts the machine's certificates alone and knows no s3.ca_file: let the machine trust "
            "them and take it out, or go without a table"
        )
    try:
        from pyiceberg.catalog import load_catalog
    except ImportError:
        raise ConfigurationError("table: Iceberg needs pyiceberg: pip install 's3lake[iceberg]'") from None
    settings = {
        "py-io-impl": "pyiceberg.io.pyarrow.PyArrowFileIO",
        # To a server of REST a warehouse is a name of its own.
        **({} if properties["type"] == "rest" else {"warehouse": f"s3://{bucket}/{_WAREHOUSE}"}),
        **_list_s3_settings(connection),
        **_list_glue_settings(properties, connection),
        **properties,
    }
    return load_catalog(settings.pop("name", NAME), **settings)


def make_file_io(properties: Mapping[str, str], connection: S3Connection) -> PyArrowFileIO:
    """Make the reader of a sink's files, with the sink's keys: a catalog may give keys for metadata only."""
    from pyiceberg.io.pyarrow import PyArrowFileIO

    own = {name: value for name, value in properties.items() if name.startswith(("s3.", "client."))}
    return PyArrowFileIO({**_list_s3_settings(connection), **own})


def find_secrets(properties: Mapping[str, str], connection: S3Connection) -> set[str]:
    """Return what no message may quote."""
    hidden = {value for name, value in properties.items() if is_secret(name)}
    return hidden.union(connection.secrets, *map(find_logins, properties.values()))


def _list_s3_settings(connection: S3Connection) -> dict[str, str]:
    created_with = {name: str(value) for name, value in connection.created_with}
    settings = {
        "s3.endpoint": connection.endpoint_url,
        "s3.region": connection.region,
        "s3.access-key-id": connection.access_key_id,
        "s3.secret-access-key": connection.secret_access_key,
        "s3.session-token": connection.session_token,
        "s3.profile-name": connection.profile,
        "s3.role-arn": connection.role_arn,
        "s3.role-session-name": connection.role_session_name if connection.role_arn else None,
        "s3.proxy-uri": connection.proxy,
        "s3.connect-timeout": str(connection.connect_timeout_s),
        "s3.request-timeout": str(connection.read_timeout_s),
        "s3.anonymous": "true" if connection.unsigned else None,
        "s3.force-virtual-addressing": None if connection.path_style else "true",
        "s3.server-side-encryption": created_with.get("ServerSideEncryption"),
        "s3.sse-kms-key-id": created_with.get("SSEKMSKeyId"),
    }
    return {name: value for name, value in settings.items() if value is not None}


def _list_glue_settings(properties: Mapping[str, str], connection: S3Connection) -> dict[str, str]:
    if properties["type"] != "glue":
        return {}
    settings = {
        "glue.region": connection.region,
        "glue.access-key-id": connection.access_key_id,
        "glue.secret-access-key": connection.secret_access_key,
        "glue.session-token": connection.session_token,
    }
    return {name: value for name, value in settings.items() if value is not None}
