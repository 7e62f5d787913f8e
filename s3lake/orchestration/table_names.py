"""What tables of assets are called in a sink. Two assets never share a name: each would remove the other's rows."""

import re
from collections.abc import Iterable

import dagster as dg

from s3lake.errors import ConfigurationError
from s3lake.orchestration.catalog import Catalog

_NAME = re.compile(r"[A-Za-z0-9._-]{1,249}")


def table_name(key: dg.AssetKey) -> str:
    """Return what the tables of an asset are called in its sink: the steps of its key, with dots between them.

    Raises:
        ConfigurationError: the key has other characters than a name in the bucket.
    """
    name = ".".join(key.path)
    if not _NAME.fullmatch(name) or name in (".", ".."):
        raise ConfigurationError(
            f"asset {key.to_user_string()}: its tables would be called {name!r}; take letters, digits, '.', '_' and "
            "'-', at most 249"
        )
    return name


def refuse_shared_names(catalog: Catalog, assets: Iterable[dg.AssetsDefinition]) -> None:
    """Refuse assets whose tables would have one name in a sink, or the name of a topic of the sink.

    Args:
        catalog: the catalog of the sinks.
        assets: the assets of the whole code location; an asset that lands no table in a sink is ignored.

    Raises:
        ConfigurationError: the message names both assets.
    """
    sinks = {catalog.io_manager_key(sink): sink for sink in catalog.config.sinks}
    names_taken: dict[tuple[str, str], dg.AssetKey] = {}
    for asset in assets:
        for key in sorted(asset.keys) if asset.is_executable else ():
            sink = sinks.get(asset.get_io_manager_key_for_asset_key(key))
            if sink is None or catalog.route(key) is not None:
                continue
            name = table_name(key)
            if sink.reads(name):
                raise ConfigurationError(
                    f"asset {key.to_user_string()}: its tables would be called {name!r}, which is a topic of sink "
                    f"{sink.name}: rename the asset, or give it another sink"
                )
            other = names_taken.setdefault((sink.name, name), key)
            if other != key:
                raise ConfigurationError(
                    f"assets {describe_key(other)} and {describe_key(key)}: the tables of both would be called "
                    f"{name!r} in sink {sink.name}, and each would remove the rows of the other: rename one, or give "
                    "it another sink"
                )


def describe_key(key: dg.AssetKey) -> str:
    """Return a key as code has it: printed with slashes, some keys look alike."""
    return str(list(key.path))
