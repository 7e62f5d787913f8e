"""What tests need of Maven Central that `spark.jars` does not resolve: classifiers and archives, kept beside jars."""

import os
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from s3lake.spark import jars


def artifact(group: str, name: str, version: str, *classifiers: str, suffix: str = "jar", alone: bool = False) -> str:
    """A dependency in Ivy's words: its files by classifier, `""` for the one without, and all that it depends on."""
    files = "".join(
        f'<artifact name="{name}" type="{suffix}" ext="{suffix}" {classifier and f"e:classifier={classifier!r}"}/>'
        for classifier in classifiers
    )
    own = f'org="{group}" name="{name}" rev="{version}"'
    more = 'conf="default->master" transitive="false"' if alone else 'conf="default->default"'
    return f"<dependency {own} {more}>{files}</dependency>"


def kept(name: str, *artifacts: str, change: Callable[[Path], Path] = Path) -> Path:
    """A directory of the cache with these artifacts, or with what `change` makes of them, downloaded once."""
    target = jars.cache_dir() / name
    if target.is_dir():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}-") as scratch:
        here = Path(scratch)
        _retrieve(artifacts, here)
        change(here / "files").rename(target)
    return target


def _retrieve(artifacts: tuple[str, ...], here: Path) -> None:
    (here / "ivy.xml").write_text(
        '<ivy-module version="2.0" xmlns:e="http://ant.apache.org/ivy/extra">'
        '<info organisation="s3lake" module="tests"/><configurations><conf name="default"/></configurations>'
        f"<dependencies>{''.join(artifacts)}</dependencies></ivy-module>",
        encoding="utf-8",
    )
    ivy = next(jars.pyspark_jars_dir().glob("ivy-*.jar"))
    command = [str(jars.find_java()), "-jar", str(ivy), "-ivy", str(here / "ivy.xml"), "-confs", "default"]
    command += ["-cache", str(here / "cache")]
    command += ["-retrieve", f"{here}/files/[artifact]-[revision](-[classifier]).[ext]"]
    if settings := os.environ.get("S3LAKE_IVY_SETTINGS"):
        command += ["-settings", settings]
    subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=900, check=True)
