"""`s3lake files`: what comes with s3lake, listed and written."""

import runpy
from pathlib import Path

import dagster as dg
import pytest

from s3lake.cli import program
from s3lake.cli.shipped import FILES
from s3lake.errors import ConfigurationError

ROOT = Path(__file__).parents[2]


def run(*arguments: str) -> None:
    program()(["files", *arguments], standalone_mode=False)


def test_every_file_is_listed_with_what_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    run()
    assert capsys.readouterr().out.splitlines()[:-1] == [f"{name}: {what}" for name, (_, what) in FILES.items()]


@pytest.mark.parametrize("name", [name for name in FILES if name != "dagster.yaml"])
def test_a_file_is_written_as_the_repository_has_it(name: str, tmp_path: Path) -> None:
    run(name, "--out", str(tmp_path / "new"))
    assert (tmp_path / "new" / name).read_bytes() == (ROOT / FILES[name][0]).read_bytes()


def test_a_written_instance_keeps_its_state_in_dagster_home_wherever_a_process_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    run("dagster.yaml", "--out", str(home))
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    monkeypatch.setenv("DAGSTER_HOME", str(home))
    with dg.DagsterInstance.get() as instance:
        instance.run_storage.set_cursor_values({"seen": "here"})
        assert instance.run_monitoring_enabled
    assert list(elsewhere.iterdir()) == []


def test_a_file_that_exists_is_not_written_over(tmp_path: Path) -> None:
    (tmp_path / "dagster.yaml").write_text("mine")
    with pytest.raises(ConfigurationError, match=r"dagster.yaml exists already: give another --out"):
        run("alerts.yml", "dagster.yaml", "--out", str(tmp_path))
    assert [(one.name, one.read_text()) for one in tmp_path.iterdir()] == [("dagster.yaml", "mine")]


def test_an_unknown_file_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(ConfigurationError, match=r"alert.yml: unknown file; there are dagster.yaml, constraints.txt, "):
        run("alert.yml")


def test_the_wheel_gets_every_file_that_the_command_writes() -> None:
    shipped = runpy.run_path(str(ROOT / "hatch_build.py"))["SHIPPED"]
    assert list(shipped) == [path for path, _ in FILES.values()]
