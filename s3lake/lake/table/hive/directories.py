"""A table of directories, built from the keys of committed objects: its location and its partitions."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath

from s3lake.errors import ConfigurationError
from s3lake.records.schema.columns.types import Columns, Primitive, Struct, Type, fold

_DAY, _HOUR = re.compile(r"\d{4}-\d\d-\d\d"), re.compile(r"\d\d")
_ENDING = re.compile(r"\.[a-z]\w*")


@dataclass(frozen=True)
class HiveTable:
    """A table that lists directories.

    Attributes:
        name: the name of the table.
        columns: the columns of its files, without the hidden ones; files of CSV have these under another name.
        hidden: columns that directories name: engines take their values from there.
        location: `s3://BUCKET/PREFIX/`, below which its directories are.
        form: format of the files as in `format.type`; `delimited` for rows of CSV that quote nothing.
        header: True if it is CSV whose files begin with the names of their columns.
        partitions: names of directories, outermost first.
        values: the values of each existing partition.
        ending: the end of all names of files, from the last dot on; empty if they differ, or have none.
        deep: True if files are in directories further down that are not partitions.
        first_days: the first days of partitions that are days; an adopted topic's began before the index.
    """

    name: str
    columns: Mapping[str, Type]
    location: str
    form: str
    header: bool
    partitions: tuple[str, ...]
    values: tuple[tuple[str, ...], ...]
    hidden: tuple[str, ...]
    ending: str
    deep: bool
    first_days: Mapping[str, str] = field(default_factory=dict)

    def locate(self, values: Iterable[str]) -> str:
        """Return the location of a partition's files."""
        directories = (f"{name}={value}/" for name, value in zip(self.partitions, values, strict=True))
        return self.location + "".join(directories)

    @property
    def projection(self) -> dict[str, str] | None:
        """Athena's properties by which an engine computes the partitions of a query; None if it cannot.

        Days and hours can be counted. Other values are known to the bucket only.
        """
        properties: dict[str, str] = {}
        for position, name in enumerate(self.partitions):
            values = [one[position] for one in self.values]
            if all(map(_DAY.fullmatch, values)):
                options = {
                    "type": "date",
                    "format": "yyyy-MM-dd",
                    "range": f"{min([*values, self.first_days.get(name, values[0])])},NOW",
                }
            elif name == "hour" and all(map(_HOUR.fullmatch, values)):
                options = {"type": "integer", "range": "0,23", "digits": "2"}
            else:
                return None
            properties.update({f"projection.{name}.{option}": text for option, text in options.items()})
        if not properties:
            return None
        template = self.locate(f"${{{name}}}" for name in self.partitions)
        return {"projection.enabled": "true", **properties, "storage.location.template": template}


def build_table(
    name: str, bucket: str, keys: Iterable[str], columns: Mapping[str, Type], form: str, *, header: bool = True
) -> HiveTable:
    """Build the table of these objects.

    Raises:
        ConfigurationError: there are no objects, or their keys are of several layouts.
    """
    layouts: set[tuple[str, tuple[str, ...]]] = set()
    values: set[tuple[str, ...]] = set()
    endings: set[str] = set()
    for key in keys:
        before, names, here = _split_directories(key)
        layouts.add((before, names))
        values.add(here)
        endings.add(PurePosixPath(key).suffix)
    deep = len(layouts) > 1 and not any(names for _, names in layouts)
    if deep:
        common = posixpath.commonpath([before for before, _ in layouts])
        layouts = {(f"{common}/" if common else "", ())}
    if len(layouts) != 1:
        shown = ", ".join(f"{before}{''.join(f'{one}=…/' for one in names)}" for before, names in sorted(layouts)[:3])
        reason = f"its objects have keys of {len(layouts)} layouts ({shown}): rewrite the hours of the former ones"
        raise ConfigurationError(f"{name}: {reason if layouts else 'nothing of it is landed yet'}")
    ((before, names),) = layouts
    ending = endings.pop() if len(endings) == 1 else ""
    by_position = form in ("csv", "delimited")
    directories = {name.lower() for name in names}  # engines do not distinguish cases
    hidden = () if by_position else tuple(column for column in columns if column.lower() in directories)
    return HiveTable(
        name=name,
        columns=_place_columns(columns, directories)
        if by_position
        else {column: type for column, type in columns.items() if column not in hidden},
        location=f"s3://{bucket}/{before}",
        form=form,
        header=header and form == "csv",
        partitions=names,
        values=tuple(sorted(values)),
        ending=ending if _ENDING.fullmatch(ending) else "",
        deep=deep,
        hidden=hidden,
    )


def cover_bucket(table: HiveTable, list_steps: Callable[[str], Iterable[str]]) -> HiveTable:
    """Return the table with the directories that the bucket has, also of objects that no index lists.

    Those are what a connector wrote before it was adopted. Of days and hours, which engines count, it looks for the
    first day only; else it lists each directory.

    Args:
        list_steps: see `Store.list_steps`.
    """
    if not table.partitions:
        return table
    root = table.location.removeprefix("s3://").partition("/")[2]
    if table.projection is None:
        return replace(table, values=tuple(sorted({*table.values, *_walk(root, table.partitions, list_steps)})))
    days = [at for at in range(len(table.partitions)) if _DAY.fullmatch(table.values[0][at])]
    if not days:
        return table
    names = table.partitions[: days[-1] + 1]
    present = [values for values in _walk(root, names, list_steps) if all(_DAY.fullmatch(values[at]) for at in days)]
    first = {table.partitions[at]: min(values[at] for values in present) for at in days if present}
    return replace(table, first_days=first)


def _walk(prefix: str, names: Sequence[str], list_steps: Callable[[str], Iterable[str]]) -> Iterator[tuple[str, ...]]:
    """Yield the values of directories below a prefix that are named as partitions are, one a level."""
    if not names:
        yield ()
        return
    for step in list_steps(prefix):
        name, equals, value = step.partition("=")
        if equals and name == names[0]:
            for below in _walk(f"{prefix}{step}/", names[1:], list_steps):
                yield value, *below


def find_alike(columns: Columns) -> tuple[str, str] | None:
    """Return the names of the first two fields, of the rows or of one struct, that differ in case only."""

    def of_item(alike: tuple[str, str] | None) -> tuple[str, str] | None:
        return alike

    return fold(Struct(columns), lambda _: None, of_item, _find_alike_fields, of_item)


def _find_alike_fields(fields: Mapping[str, tuple[str, str] | None]) -> tuple[str, str] | None:
    by_lower: dict[str, str] = {}
    for name, alike_below in fields.items():
        if alike_below:
            return alike_below
        if name.lower() in by_lower:
            return by_lower[name.lower()], name
        by_lower[name.lower()] = name
    return None


def _place_columns(columns: Collection[str], directories: Collection[str]) -> dict[str, Type]:
    """Return all columns as text, under names that engines tell apart: readers of CSV use their position only.

    They are texts because readers do not understand every form of a number or a time.

    Args:
        directories: names of directories, in small letters: no column gets one of them.
    """
    taken = {*(column.lower() for column in columns), *directories}
    used = set(directories)
    named: dict[str, Type] = {}
    for column in columns:
        name = column
        while column.lower() in used and name.lower() in taken:
            name = f"{name}_value"
        taken.add(name.lower())
        used.add(name.lower())
        named[name] = Primitive.STRING
    return named


def _split_directories(key: str) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """Return the part of a key before its first `name=value` directory, and the names and values of all of these."""
    steps = key.split("/")[:-1]
    first = next((at for at, step in enumerate(steps) if "=" in step), len(steps))
    pairs = [step.partition("=") for step in steps[first:]]
    if not all(equals for _, equals, _ in pairs):
        raise ConfigurationError(f"{key}: a directory that is not name=value follows one that is")
    before = "".join(f"{step}/" for step in steps[:first])
    return before, tuple(name for name, _, _ in pairs), tuple(value for _, _, value in pairs)
