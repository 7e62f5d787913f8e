"""Variables of a configuration that stand in it still when it is written anew: `${NAME}` instead of what it holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import SecretStr, ValidationError

from s3lake.config.report import Path, Reference, dotted
from s3lake.sink import Config, ConfigModel
from s3lake.text.masking import is_masked


@dataclass
class Restored:
    """What becomes of references.

    Attributes:
        values: the configuration to be written, with the references in it.
        texts: paths of the values that are references now.
        hidden: paths of what came from a secret and cannot be written as its reference.
        notices: of values that stand there instead of the references they came from.
    """

    values: dict[str, Any]
    texts: set[Path] = field(default_factory=set)
    hidden: set[Path] = field(default_factory=set)
    notices: list[str] = field(default_factory=list)


def restore_references(config: Config, values: dict[str, Any], references: Mapping[Path, Reference]) -> Restored:
    """Put references into the values of a configuration, where a value is what its reference holds."""
    done = Restored(values)
    whole = config.model_dump(mode="json", by_alias=True)
    for path, reference in references.items():
        _keep(config, whole, path, reference, done)
    return done


def _keep(config: Config, whole: dict[str, Any], path: Path, reference: Reference, done: Restored) -> None:
    value, shown = _held(config, path), _held(whole, path)
    parts = reference.written.split(",")
    if isinstance(value, tuple) and ",".join(map(str, value)) == reference.value and len(parts) == len(value):
        if reference.written and _put(done.values, path, list(parts)):
            done.texts |= {(*path, at) for at in range(len(parts))}
            return
    elif _is(value, reference.value) or (shown is not None and _means(whole, path, reference.value)):
        # Beside a reference a secret may stand as it is.
        safe = reference.alone or not (isinstance(shown, str) and is_masked(shown))
        if reference.written and safe and _put(done.values, path, reference.written):
            done.texts.add(path)
            return
    if reference.secret:
        done.hidden.add(path)
    elif reference.written and _held(done.values, path) is not None:
        done.notices.append(f"{dotted(path)}: is written as it is now, without the reference that it came from")


def _held(holder: Any, path: Path) -> Any:
    """What stands at a path of a model or of plain values; None where there is nothing."""
    for step in path:
        if isinstance(holder, ConfigModel):
            fields = type(holder).model_fields
            name = next((name for name, info in fields.items() if step in (info.alias, name)), None)
            holder = getattr(holder, name) if name else None
        elif isinstance(holder, Mapping):
            holder = holder.get(step)
        elif isinstance(holder, Sequence) and not isinstance(holder, str) and isinstance(step, int):
            holder = holder[step] if step < len(holder) else None
        else:
            return None
    return holder


def _is(value: Any, text: str) -> bool:
    return (value.get_secret_value() if isinstance(value, SecretStr) else value) == text


def _means(whole: dict[str, Any], path: Path, text: str) -> bool:
    """Whether the configuration is the same one with a text in that place."""
    *above, last = path
    holder, before = _held(whole, tuple(above)), _held(whole, path)
    try:
        same = Config.model_validate(whole)
        holder[last] = text
        return Config.model_validate(whole) == same
    except ValidationError:
        return False
    finally:
        holder[last] = before


def _put(values: dict[str, Any], path: Path, text: Any) -> bool:
    """Set what stands at a path; False where there is no place for it."""
    holder: Any = values
    for step in path[:-1]:
        if isinstance(holder, dict):
            holder = holder.setdefault(step, {})
        elif isinstance(holder, list) and isinstance(step, int) and step < len(holder):
            holder = holder[step]
        else:
            return False
    last = path[-1]
    fits = isinstance(holder, dict) or (isinstance(holder, list) and isinstance(last, int) and last < len(holder))
    if fits:
        holder[last] = text
    return fits
