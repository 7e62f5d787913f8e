"""Writes docs/reference/ from the code: settings, commands, Python, keys of connectors. `make reference`."""

import inspect
import json
import re
import runpy
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pydantic import BaseModel

# In a worktree the installed package is another one's code: this page is about the code next to it.
sys.path.insert(0, str(Path(__file__).parents[1]))

import s3lake
from s3lake.cli import program
from s3lake.cli.output import DIFFERENT, EXIT_CODES
from s3lake.config.model import Config
from s3lake.config.model.descriptions import field_descriptions, json_schema, model_summary, nested_models
from s3lake.index.plan.counts import Counts, define_counts

HERE = Path(__file__).parent / "reference"
_COMMON = 5
"""Options of so many commands are described once."""
_WRITTEN = "Written by `make reference` from the code; what is changed here is lost.\n"


# Keys of connectors


def connectors() -> str:
    """Describe every key of every connector's own definition, and its effect."""
    keys = runpy.run_path(str(Path(__file__).parent / "keys.py"))
    text = ["# Every key of every connector", _WRITTEN]
    text.append(
        "What s3lake does with each key of a connector's own definition. Each was loaded with a value other than its "
        "default, and with the keys that it needs. *Honoured*: the native settings that it changes. *Notice*: it is "
        "accepted, and the notice says what it means here. *No effect*: it is accepted, and the reason is printed. "
        "*Refused*: the message says what to write. No key is ignored without a message. [Connectors' "
        "configurations](../connectors.md) explains the usual ones.\n"
    )
    for definition in keys["DEFINITIONS"]:
        harmless, every = keys["counted"](definition)
        summary = f"{harmless} of {every} keys are honoured or have no effect."
        text += [f"## {definition.title}", f"{' '.join(filter(None, (summary, definition.note)))}\n"]
        text += _outcomes(keys["outcomes"](definition))
        if definition.properties:
            text += ["Of `PROPERTIES` in KCQL:\n", *_outcomes(keys["outcomes_of_properties"](definition))]
    return "\n".join(text)


def _outcomes(outcomes: Iterable[Any]) -> list[str]:
    words = {"honoured": "honoured", "notice": "notice", "no effect": "no effect", "refused": "refused"}
    rows = ["| key | default | becomes | |", "|---|---|---|---|"]
    for outcome in outcomes:
        default = f"`{outcome.key.default}`" if outcome.key.default else ""
        explanation = outcome.explanation if outcome.becomes == "honoured" else _escaped(outcome.explanation)
        cells = (f"`{outcome.key.name}`", default, words[outcome.becomes], explanation)
        rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return [*rows, ""]


def _escaped(text: str) -> str:
    return re.sub(r"([<>*_\[\]{}])", r"\\\1", text)


# Settings


def settings() -> str:
    """Every setting of the native configuration."""
    schema = json_schema()
    definitions = {Config.__name__: schema, **schema["$defs"]}
    text = ["# Settings", _WRITTEN]
    text.append(
        "All settings of the native configuration, part by part. [Configuring](../configure.md) explains the usual "
        "ones; `s3lake schema editor` prints the same for editors. Sizes are bytes or text as `128MiB` and `500MB`, "
        "durations are seconds or text as `5m` and `1.5h`.\n"
    )
    for name, part in nested_models(Config).items():
        text += [
            f"## {name}",
            model_summary(part) + "\n",
            "| setting | type | default | meaning |",
            "|---|---|---|---|",
        ]
        text += [_row(setting, definitions[name], part) for setting in definitions[name]["properties"]]
        text.append("")
    return "\n".join(text)


def _row(setting: str, definition: dict[str, Any], part: type[BaseModel]) -> str:
    required = setting in definition.get("required", ())
    default = "needed" if required else _default(part, setting)
    meaning = re.sub(r"\bNone\b", "`null`", field_descriptions(part).get(setting, ""))
    cells = (f"`{setting}`", _type(definition["properties"][setting]), default, meaning)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _default(part: type[BaseModel], setting: str) -> str:
    shown = part.model_construct().model_dump(mode="json", by_alias=True, warnings=False)[setting]
    return "as below" if isinstance(shown, dict) and shown else f"`{json.dumps(shown)}`"


def _type(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in schema:
        return " or ".join(_type(one) for one in schema["anyOf"])
    if "const" in schema or "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema.get("enum", [schema.get("const")]))
    match schema.get("type"):
        case "array":
            return f"list of {_type(schema.get('items', {}))}"
        case "object":
            values = schema.get("additionalProperties")
            return f"map to {_type(values)}" if isinstance(values, dict) else "map"
        case str(simple):
            return {"string": "text", "integer": "whole number", "boolean": "true or false"}.get(simple, simple)
    return "any"


# Commands


def commands() -> str:
    """Describe every command, its arguments and its options."""
    root: Any = program()
    text = ["# Commands", _WRITTEN, "## Exit codes", "| code | when |", "|---|---|"]
    text += [f"| {code} | {meaning} |" for code, meaning in EXIT_CODES.items()]
    text += ["", "| command | its differences |", "|---|---|"]
    text += [f"| `s3lake {name}` | {meaning} |" for name, meaning in sorted(DIFFERENT.items())]
    leaves = sorted(_leaves("s3lake", root))
    rows = {
        name: [_parameter(option) for option in command.params if option.name != "help"] for name, command in leaves
    }
    uses = Counter(row for of_command in rows.values() for row in of_command)
    common = [row for row, count in uses.items() if count >= _COMMON]
    text += ["", "## Common options", "| | |", "|---|---|", *common, ""]
    for name, command in leaves:
        text += [f"## {name}", inspect.cleandoc(command.help) + "\n"]
        own = [row for row in rows[name] if row not in common]
        shared = [row.split()[1].rstrip("`") + "`" for row in rows[name] if row in common]
        text += [
            *(["| | |", "|---|---|", *own, ""] if own else []),
            *([f"Common: {', '.join(shared)}\n"] if shared else []),
        ]
    return "\n".join(text)


def _leaves(name: str, command: Any) -> list[tuple[str, Any]]:
    inside = getattr(command, "commands", None)
    if inside is None:
        return [(name, command)]
    return [leaf for word, one in inside.items() for leaf in _leaves(f"{name} {word}", one)]


def _parameter(parameter: Any) -> str:
    is_option = parameter.opts[0].startswith("-")
    value = parameter.metavar or (str(parameter.name).upper() if not parameter.is_flag else "") if is_option else ""
    shown = f"`{parameter.opts[0]}{f' {value}' if value else ''}`" if is_option else f"`{parameter.metavar}`"
    texts = [re.sub(r"(?<![.!?])$", ".", parameter.help or "").removeprefix(".")]
    if parameter.envvar:
        texts.append(f"Default: the variable `{parameter.envvar}`.")
    if parameter.required:
        texts.append("Required.")
    elif is_option and not parameter.is_flag and parameter.default is not None:
        texts.append(f"Default: `{parameter.default}`.")
    return f"| {shown} | {' '.join(filter(None, texts))} |".replace("\n", " ")


# Python


def api() -> str:
    """Describe what `s3lake` exports."""
    text = ["# Python", _WRITTEN, "The names of `import s3lake`. Everything else may change without notice.\n"]
    for name in sorted(s3lake.__all__, key=str.lower):
        thing = getattr(s3lake, name)
        text += [f"## {name}", f"```text\n{_signature(name, thing)}\n```\n"]
        if name in nested_models(Config):
            text.append(f"{model_summary(thing)} [Its settings](settings.md#{name.lower()}).\n")
        else:
            text.append(_prose(thing))
    return "\n".join(text)


def _signature(name: str, thing: Any) -> str:
    if inspect.isclass(thing) and issubclass(thing, BaseModel):
        return f"{name}(...)"
    plain = re.sub(r"\b(?:[a-z_]\w*\.)+(?=[A-Za-z])", "", str(inspect.signature(thing))).replace("'", "")
    return f"{name}{plain}".removesuffix(" -> None")


def _prose(thing: Any) -> str:
    """Write a docstring of Google's style as Markdown."""
    text = inspect.getdoc(thing) or ""
    text = re.sub(r"^(Args|Attributes|Raises|Returns|Yields):$", r"**\1**\n", text, flags=re.MULTILINE)
    joined = re.sub(r"\n        +", " ", text)
    return re.sub(r"^    (\w+): ", r"- `\1`: ", joined, flags=re.MULTILINE) + "\n"


# Counts


def counts() -> str:
    """Describe every count of records, and its name in each place that shows it."""
    text = ["# Counts of records", _WRITTEN]
    text.append(
        "A task counts the records of each topic-partition. The manifest of a commit has these counts, and a tile has "
        "their sums. They are shown in the [metadata of an hour](../hour.md), by the label `count` of the "
        "[metric](../monitoring.md) `s3lake_hour_records`, and by `s3lake land` and `s3lake status`.\n"
    )
    text.append(
        "Each record that was read has one *outcome*, so the outcomes add up to `read`. A *note* counts records a "
        "further time. A count by field is a map from the path of a field to a number of records; paths of keys begin "
        "with `key:`, and paths of empty lists and objects [without a column](../formats.md#columns) with `empty:`. "
        "A count that is missing in a document of the index is 0.\n"
    )
    text += ["| count | in the index | what is counted | unit | |", "|---|---|---|---|---|"]
    text += [
        f"| `{one.name}` | `{field}` | {one.meaning} | {one.unit} | {one.role} |"
        for field, one in define_counts(Counts).items()
    ]
    return "\n".join(text) + "\n"


PAGES = {
    "settings.md": settings,
    "commands.md": commands,
    "api.md": api,
    "keys.md": connectors,
    "counts.md": counts,
}

if __name__ == "__main__":
    HERE.mkdir(exist_ok=True)
    for page, written in PAGES.items():
        path, text = HERE / page, written()
        is_new = not path.exists() or path.read_text("utf-8") != text
        path.write_text(text, encoding="utf-8")
        print(f"{path}: {'written' if is_new else 'as it was'}")
