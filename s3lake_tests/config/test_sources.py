"""Files, directories of files, and the environment's file."""

import pytest

from s3lake.config.source import Text, read_texts, with_dotenv
from s3lake.errors import ConfigurationError


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["plain", "byte order mark"])
def test_a_file_is_one_source_and_a_byte_order_mark_is_not_its_text(tmp_path, mark):
    path = tmp_path / "Lake.YAML"
    path.write_bytes(mark + b"sinks: []")
    assert read_texts(str(path), {}) == (Text(str(path), "sinks: []"),)


def test_a_directorys_files_come_in_the_order_of_their_names(tmp_path):
    for name in ("b.json", "a.properties", "c"):
        (tmp_path / name).write_text(name)
    assert [source.text for source in read_texts(str(tmp_path), {})] == ["a.properties", "b.json", "c"]


def test_hidden_files_and_directories_inside_are_left_out_so_a_mounted_config_map_is_read_once(tmp_path):
    (tmp_path / "..data").mkdir()
    (tmp_path / "..data" / "a.yaml").write_text("a")
    (tmp_path / "a.yaml").symlink_to(tmp_path / "..data" / "a.yaml")
    (tmp_path / ".hidden.yaml").write_text("b")
    assert [source.text for source in read_texts(str(tmp_path), {})] == ["a"]


def test_a_directory_without_files_is_refused(tmp_path):
    with pytest.raises(ConfigurationError, match="there is no file in this directory"):
        read_texts(str(tmp_path), {})


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(
        ConfigurationError, match=r"nothing.yaml: no such file or directory; correct the path, or set S3LAKE_CONFIG"
    ):
        read_texts(str(tmp_path / "nothing.yaml"), {})


def test_bytes_that_are_no_text_are_refused_with_their_place(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_bytes(b"a: 1\nb: \xff\n")
    with pytest.raises(ConfigurationError) as refusal:
        read_texts(str(path), {})
    assert str(refusal.value) == f"{path}:2:4: byte 0xff is not UTF-8; save it as UTF-8"


# .env


@pytest.mark.parametrize("variable", ["S3LAKE_ENV_PATH", "IGGY_CONNECTORS_ENV_PATH"])
def test_the_real_environment_wins_over_the_file(tmp_path, variable):
    path = tmp_path / ".env"
    path.write_text("# keys\nexport A=file\nB='file b'\nEMPTY=\n")
    real = {variable: str(path), "A": "real"}
    assert with_dotenv(real) == {variable: str(path), "A": "real", "B": "file b", "EMPTY": ""}


def test_without_a_file_the_environment_is_as_it_is():
    assert with_dotenv({"A": "1"}) == {"A": "1"}


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(ConfigurationError, match=r"S3LAKE_ENV_PATH: .*none cannot be read: No such file"):
        with_dotenv({"S3LAKE_ENV_PATH": str(tmp_path / "none")})


@pytest.mark.parametrize("line", ["no value here", "NAME", "A='unterminated"])
def test_a_line_that_says_nothing_is_refused_with_its_place(tmp_path, line):
    path = tmp_path / "env"
    path.write_text(f"A=1\n{line}\n")
    with pytest.raises(ConfigurationError) as refusal:
        with_dotenv({"S3LAKE_ENV_PATH": str(path)})
    assert str(refusal.value) == f"{path}:2:1: this is not NAME=value; correct the line, or begin it with #"


def test_two_different_files_are_refused():
    with pytest.raises(ConfigurationError, match="name different files: unset one of them"):
        with_dotenv({"S3LAKE_ENV_PATH": "a", "IGGY_CONNECTORS_ENV_PATH": "b"})
