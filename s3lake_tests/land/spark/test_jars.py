"""Maven coordinates become local jars: once by Java, from then on from the cache."""

import errno
import os
import shlex
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from s3lake.errors import ConfigurationError, TransientError
from s3lake.land.spark import jars

# Stands in for Java: tells its version, and as Ivy retrieves one jar; every call leaves its arguments in a file.
FAKE_JAVA = r"""#!/bin/sh
echo "$*" >> "$FAKE_JAVA_CALLS"
if [ "$1" = -version ]; then echo 'openjdk version "17.0.15" 2025-04-15' >&2; exit 0; fi
while [ $# -gt 0 ]; do
  if [ "$1" = -retrieve ]; then directory=$(dirname "$2"); fi
  shift
done
sleep "${FAKE_JAVA_TAKES:-0}"
mkdir -p "$directory" && echo jar > "$directory/kafka-clients-3.9.0.jar"
"""


def java_home(directory: Path, script: str) -> Path:
    java = directory / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(script)
    java.chmod(0o755)
    return directory


def java_that_prints(version: str, directory: Path) -> Path:
    return java_home(directory, f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025-01-01' >&2\n")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("S3LAKE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "jars"


@pytest.fixture
def java_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file in which the fake Java notes its calls."""
    calls = tmp_path / "calls"
    monkeypatch.setenv("FAKE_JAVA_CALLS", str(calls))
    monkeypatch.setenv("JAVA_HOME", str(java_home(tmp_path / "java", FAKE_JAVA)))
    return calls


def resolve(*coordinates: str) -> tuple[Path, ...]:
    return jars.resolve("clients", coordinates or ["org.apache.kafka:kafka-clients:3.9.0"])


def test_jars_are_resolved_into_the_cache_once(cache: Path, java_calls: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (jar,) = resolve()
    assert (jar.name, jar.is_file(), jar.parent.parent) == ("kafka-clients-3.9.0.jar", True, cache)
    java_calls.unlink()
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    assert resolve() == (jar,)
    assert not java_calls.exists()


@pytest.mark.usefixtures("java_calls")
@pytest.mark.parametrize("code", [errno.EROFS, errno.EACCES, errno.ENOSPC])
def test_a_cache_that_cannot_be_written_to_is_named_with_the_setting_of_another(
    code: int, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr("tempfile.mkdtemp", refuse)
    expected = rf"{cache} cannot be written to \({os.strerror(code)}\).* set S3LAKE_CACHE to a directory that can"
    with pytest.raises(ConfigurationError, match=expected):
        resolve()


@pytest.mark.usefixtures("cache", "java_calls")
def test_other_coordinates_are_resolved_apart_in_whatever_order() -> None:
    assert resolve()[0].parent != resolve("org.apache.kafka:kafka-clients:4.1.1")[0].parent
    coordinates = ["org.slf4j:slf4j-api:2.0.16", "org.apache.kafka:kafka-clients:3.9.0"]
    assert resolve(*coordinates) == resolve(*coordinates[::-1])


@pytest.mark.usefixtures("java_calls")
def test_two_at_once_both_succeed_and_leave_one_directory(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_JAVA_TAKES", "0.3")
    with ThreadPoolExecutor(2) as pool:
        one, two = pool.map(jars.resolve, ["clients"] * 2, [["org.apache.kafka:kafka-clients:3.9.0"]] * 2)
    assert one == two
    assert [entry.name for entry in cache.iterdir()] == [one[0].parent.name]


@pytest.mark.usefixtures("cache")
def test_ivy_settings_of_the_environment_are_used(
    java_calls: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = tmp_path / "ivysettings.xml"
    monkeypatch.setenv("S3LAKE_IVY_SETTINGS", str(settings))
    resolve()
    assert f"-settings {settings}" in java_calls.read_text()


def test_a_failed_resolution_shows_the_end_of_the_output_of_ivy_and_may_be_retried(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = (
        "#!/bin/sh\nif [ $1 = -version ]; then echo 'version \"17\"' >&2; exit 0; fi\necho 'UNRESOLVED: x#y'; exit 1\n"
    )
    monkeypatch.setenv("JAVA_HOME", str(java_home(tmp_path / "java", script)))
    with pytest.raises(TransientError, match=r"x:y:1 failed\. Check the network(.|\n)*UNRESOLVED: x#y$"):
        jars.resolve("broken", ["x:y:1"])
    assert list(cache.iterdir()) == []


@pytest.mark.parametrize(("version", "major"), [("17.0.15", 17), ("21.0.2", 21)])
def test_java_17_and_21_serve(version: str, major: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert major in jars.JAVA_MAJORS
    monkeypatch.setenv("JAVA_HOME", str(java_that_prints(version, tmp_path)))
    assert jars.find_java() == tmp_path / "bin" / "java"


def test_java_is_found_on_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", f"{java_that_prints('17.0.1', tmp_path) / 'bin'}{os.pathsep}{os.environ['PATH']}")
    assert jars.find_java() == tmp_path / "bin" / "java"


def test_java_is_asked_for_its_version_once_and_again_when_it_changes(java_calls: Path) -> None:
    java = jars.find_java()
    assert (jars.find_java(), jars.read_java_version(java)) == (java, 'openjdk version "17.0.15" 2025-04-15\n')
    assert java_calls.read_text() == "-version\n"
    java.write_text("#!/bin/sh\necho 'openjdk version \"21.0.2\"' >&2\n")
    assert jars.read_java_version(java) == 'openjdk version "21.0.2"\n'


@pytest.mark.parametrize("line", ["Picked up JAVA_TOOL_OPTIONS: -Da=b", "NOTE: Picked up JDK_JAVA_OPTIONS: -Da=b"])
def test_options_of_java_from_variables_are_no_part_of_its_version(line: str, tmp_path: Path) -> None:
    java = (
        java_home(tmp_path, f"#!/bin/sh\necho '{line}' >&2\necho 'openjdk version \"17.0.1\"' >&2\n") / "bin" / "java"
    )
    assert jars.read_java_version(java) == 'openjdk version "17.0.1"\n'


@pytest.mark.parametrize(("version", "major"), [("25.0.1", "25"), ("11.0.2", "11"), ("1.8.0_402", "8")])
def test_another_version_is_refused(version: str, major: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(java_that_prints(version, tmp_path)))
    expected = rf"Java at {tmp_path}/bin/java \(from JAVA_HOME\) is version {major}; Spark 4 runs on 17 or 21\."
    with pytest.raises(ConfigurationError, match=expected):
        jars.find_java()


def test_a_java_that_does_not_start_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(java_home(tmp_path, "#!/bin/sh\nexit 1\n")))
    with pytest.raises(ConfigurationError, match="does not start or does not tell its version"):
        jars.find_java()


def test_a_java_home_without_java_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(ConfigurationError, match=rf"JAVA_HOME is {tmp_path}, but there is no program"):
        jars.find_java()


def test_a_missing_java_is_an_error_with_the_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigurationError, match="No Java found: JAVA_HOME is not set and PATH has no java") as missing:
        jars.find_java()
    for way in ("apt-get install openjdk-17", "brew install openjdk@17", "pip install install-jdk"):
        assert way in str(missing.value)


@pytest.mark.usefixtures("jvm")
@pytest.mark.slow("downloads the broker again")
def test_the_broker_comes_whole() -> None:
    names = {jar.name for jar in jars.kafka_broker_jars()}
    assert {"kafka_2.13-4.1.1.jar", "kafka-clients-4.1.1.jar", "slf4j-simple-1.7.36.jar"} <= names


_LOCAL_REPOSITORY = """\
<ivysettings><settings defaultResolver="here"/><resolvers><filesystem name="here">
<artifact pattern="{}/[artifact]-[revision].[ext]"/></filesystem></resolvers></ivysettings>
"""


@pytest.mark.usefixtures("jvm")
@pytest.mark.long
@pytest.mark.parametrize("name", ["plain", "with spaces", "(old)", "[new]", "it's", "ünïcödé", "100%20"])
def test_ivy_fills_a_cache_of_any_name_in_the_locale_c(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "client-1.jar").write_bytes(b"jar")
    (tmp_path / "settings.xml").write_text(_LOCAL_REPOSITORY.format(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("S3LAKE_IVY_SETTINGS", "settings.xml")
    monkeypatch.setenv("S3LAKE_CACHE", str(tmp_path / name))
    monkeypatch.setenv("LC_ALL", "C")
    (jar,) = jars.resolve("client", ["ours:client:1"])
    assert jar.read_bytes() == b"jar"
    assert jar.is_relative_to(tmp_path / name)


@pytest.mark.parametrize("option", ["-Da=/tmp/x", "-Da=/a b", "-Da=it's", '-Da=a"b c', "-Da=back\\slash x", "-Da=ü  ö"])
def test_a_quoted_option_is_one_word_of_a_list(option: str) -> None:
    # Spark divides a list as a shell does, for these signs.
    assert shlex.split(f"-Xmx1g {jars.quote_option(option)} -Xms1g") == ["-Xmx1g", option, "-Xms1g"]


@pytest.mark.parametrize(
    ("variables", "locale"),
    [
        ({}, "C.UTF-8"),
        ({"LC_ALL": "C", "LANG": "de_DE.UTF-8"}, "C.UTF-8"),
        ({"LC_ALL": "POSIX"}, "C.UTF-8"),
        ({"LC_CTYPE": "POSIX", "LANG": "de_DE.UTF-8"}, "C.UTF-8"),
        ({"LANG": "C"}, "C.UTF-8"),
        ({"LC_ALL": "", "LC_CTYPE": "C.UTF-8", "LANG": "C"}, ""),
        ({"LANG": "de_DE.UTF-8"}, None),
        ({"LC_ALL": "de_DE.ISO-8859-1"}, "de_DE.ISO-8859-1"),
    ],
)
def test_a_jvm_reads_names_as_utf8_in_the_locale_c_and_as_the_user_set_otherwise(
    variables: dict[str, str], locale: str | None
) -> None:
    environment = jars.make_java_environment({"HOME": "/of/a", **variables})
    assert environment.pop("LC_ALL", None) == locale
    assert environment["HOME"] == "/of/a"
