"""Values of options as people write them."""

import pytest

from s3lake.text import option_values


@pytest.mark.parametrize(("text", "number"), [("7", 7), (" 07 ", 7), ("+1", 1), ("-1", -1)])
def test_a_whole_number_is_digits_with_a_sign(text: str, number: int) -> None:
    assert option_values.parse_whole_number(text, -1, 9) == number


@pytest.mark.parametrize("text", ["", "1_0", "1.0", "²", "-2", "10", "ten"])
def test_any_other_is_refused_with_its_bounds_and_without_the_value(text: str) -> None:
    with pytest.raises(ValueError, match=r"^is not allowed; write a whole number from -1 to 9$"):
        option_values.parse_whole_number(text, -1, 9)


def test_words_are_read_in_any_case_and_returned_as_they_are_allowed() -> None:
    assert option_values.parse_bool(" TRUE ") is True
    assert option_values.parse_choice("leftpad", ["LeftPad", "NoOp"]) == "LeftPad"
    with pytest.raises(ValueError, match=r"^is not allowed; did you mean LeftPad\? use one of: LeftPad, NoOp$"):
        option_values.parse_choice("leftped", ["LeftPad", "NoOp"])


def test_names_are_separated_by_commas_and_not_empty() -> None:
    assert option_values.parse_names(" a, b ") == ["a", "b"]
    assert option_values.parse_names("") == []
    with pytest.raises(ValueError, match="has an empty name between commas"):
        option_values.parse_names("a,,b")


@pytest.mark.parametrize(
    ("name", "names", "nearest"),
    [
        ("plugin_config.compression", ["plugin_config.region", "plugin_config.prefix"], None),
        ("plugin_config.regoin", ["plugin_config.endpoint", "plugin_config.region"], "plugin_config.region"),
        ("schema.compabtibility", ["schema.compatibility"], "schema.compatibility"),
        ("s3.regions", ["s3.region", "s3.retries"], "s3.region"),
        ("flush.sizes", ["flush.size"], "flush.size"),
        ("topic", ["topics"], "topics"),
        ("value.converter.schemas.enabled", ["value.converter.schemas.enable"], "value.converter.schemas.enable"),
    ],
)
def test_a_name_in_the_same_section_is_nearest_only_if_the_rest_is_near(
    name: str, names: list[str], nearest: str | None
) -> None:
    assert option_values.find_nearest(name, names) == nearest
