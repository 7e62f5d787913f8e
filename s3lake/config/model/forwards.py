"""Other systems that get a copy of each sealed hour of a sink."""

from typing import TYPE_CHECKING

from pydantic import Field

from s3lake.config.model.base import ConfigModel, Name, Options

if TYPE_CHECKING:
    pass


class Forward(ConfigModel):
    """A destination of the sealed hours of a sink (docs/forward.md).

    Attributes:
        to: `postgres`, `mongodb`, `elasticsearch`, `quickwit`, `stdout`, or what another package brings.
        options: the options of the destination, by the names of its Python class: server, table, login. Secrets are
            never printed.
        name: the name in its assets, `forward/<name>/<topic>`; without it they are called after `to`.
        topics: the topics to forward; all topics of the sink if it is empty.
    """

    to: str = Field(examples=["postgres"])
    options: Options = Field(default_factory=dict, repr=False, examples=[{"conninfo": "${PG}", "table": "lake.orders"}])
    name: Name | None = None
    topics: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """The name in the keys of its assets."""
        return self.name or self.to
