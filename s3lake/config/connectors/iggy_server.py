"""The server of an Iggy connector: the section `iggy` of the runtime's file, or its variables."""

from __future__ import annotations

from collections.abc import Sequence

from s3lake.config.connectors.iggy_file import File
from s3lake.config.draft import Draft
from s3lake.config.keys import Keys
from s3lake.config.report import Report, Setting
from s3lake.config.variables import Variables

SECTION = "iggy"
_ADDRESS, _USER, _PASSWORD = "localhost:8090", "iggy", "iggy"
_ELSEWHERE = ("s3lake.kafka.", "s3lake.source.type")


class Server:
    """The server that the runtime names, if it names one."""

    def __init__(self, runtime: File, report: Report, references: Variables) -> None:
        self._places = [place for path, place in runtime.places.items() if path[:1] == (SECTION,)]
        self._report, self._used = report, False
        self._named = SECTION in runtime.data
        settings = [setting for setting in runtime.settings() if setting.key.startswith(f"{SECTION}.")]
        self._keys = Keys(references.resolve(settings, report), report)

    def put(self, common: Draft, connector: Sequence[Setting]) -> bool:
        """Put the server as the source. Return False if there is none, or the connector names another source.

        The runtime's own defaults hold for what the section leaves out.
        """
        if not self._named or any(setting.key.startswith(_ELSEWHERE) for setting in connector):
            return False
        self._used = True
        common.put("source.type", "iggy")
        common.put("source.address", self._keys.text("iggy.address", _ADDRESS))
        token = self._keys.text("iggy.token")
        if token.value:
            common.put("source.token", token)
        else:
            common.put("source.username", self._keys.text("iggy.username", _USER))
            common.put("source.password", self._keys.text("iggy.password", _PASSWORD))
        tls = self._keys.boolean("iggy.tls.enabled", False)
        if tls.value:
            common.put("source.tls", tls)
            for name in ("ca_file", "domain"):
                given = self._keys.text(f"iggy.tls.{name}")
                if given.value:
                    common.put(f"source.{name}", given)
        return True

    def tell(self) -> None:
        """Note a server that no sink reads."""
        for place in () if self._used else self._places[:1]:
            self._report.notice(place, "has no effect: [s3lake] says where the records are")
