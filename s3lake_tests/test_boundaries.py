"""Which room of the package may import which, and what no file contains. CONTRIBUTING.md has it in words."""

import ast
import functools
import graphlib
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import pytest

from s3lake_tests.conftest import slow_after

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "s3lake"

_IN_ORDER = """
    errors hours scratch interrupts plugins text text.dates
    records.record_timestamps
    records.schema.columns records.schema.connect_schema records.schema.json_schema_parts
    records.schema.json_schema records.schema.avro
    records.schema.protobuf records.schema.registry records.encode
    records.convert.read records.transform.step records.transform.families records.transform.chain
    records.transform.sql records.convert.fit records.convert.rows records.convert.conversion
    records.convert.convert_batch records.layout
    config.model config
    source source.kafka source.iggy
    index.plan index.store index.commit
    lake.table.iceberg lake.table.hive lake.objects lake.form lake.readback lake.forwarding lake.metrics lake.prometheus
    lake.verify
    land.adopt land.spark land.task.outcomes land.task.staging land.task.transformed_batch land.task.refused_records
    land.task.placed_rows land.task.task_output land.task.pipeline land.task.table_rows land.task.worker_daemon land.sql
    land.request land.micro_batch land.topic land.change land.hour land.many_topics land.preview
    orchestration definitions
    demo
    cli __main__
"""
ROOMS = _IN_ORDER.split()
"""The nine rooms, a line or more for each, and what is in them. Each imports only from rooms before it."""

TO_THE_RIGHT = {
    ("source.sources", "source.kafka.offsets"): "`kafka` in a configuration cannot be the name of an entry point",
}
"""Imports against the order, and why each is there. All but imports of types happen when a function is called."""

DAGSTER = {
    "orchestration": "all there is of Dagster",
    "definitions": "the code location",
    "demo.run_demo": "it backfills through the definitions, as a user would",
}
"""The only modules that may import Dagster."""

VERIFY_MAY_IMPORT = {
    "errors": "",
    "hours": "",
    "index.plan.tile": "a document of the index",
    "index.plan.counts": "the counts of a document of the index",
    "index.plan.hour_grid": "the hours of a range, by the clock",
    "index.plan.stamps": "the sentences of notices, as a landing has them",
    "index.commit.documents": "documents of the index",
    "index.commit.topic_index": "reads documents of the index",
    "index.store": "S3 itself",
    "lake.objects": "it reads objects, and shares no code with the writer either",
    "records.schema.columns.types": "the types of columns that a manifest has",
    "records.schema.registry": "fetches the text of a schema",
    "records.schema.registry.registry_answers": "the error of a schema that a registry does not have",
    "records.schema.registry.registry_connection": "how a registry is reached",
    "records.schema.protobuf.compiler": "Google's compiler, and no meaning",
    "source.offsets": "where a topic begins and ends",
    "source.sources": "sources other than Kafka have no other reader",
    "source.record_batches": "sources other than Kafka have no other reader, and transforms take batches",
    "source.kafka.offsets": "where a topic begins and ends: the planner's client, which positions are shared with",
    "source.kafka.client_properties": "settings of the client",
    "config.model": "types only",
    "text.quantities": "a count with its noun, for sentences",
}
"""All that `verify` shares with the writer, and why: it finds the writer's mistakes, so it may share none."""

VERIFY_SHARES = {
    "lake.verify.repeat_transforms": {
        "records.transform.chain.apply",
        "records.transform.chain.chain",
        "records.convert.read.keys_and_values",
        "records.schema.columns.details",
    }
}
"""The exception, which docs/guarantees.md names: only transforms know what they do to a record."""

OBJECTS_KNOWS = {"errors", "records.schema.columns.types", "index.commit.documents"}
"""`objects` reads what was written, for `verify` too: it shares with the writer what a manifest has, and no code."""

NEVER_AT_IMPORT = {"pyspark", "pandas", "boto3", "botocore", "pyiceberg", "psycopg"}
"""Imported where they are used, inside a function: each costs every process that loads the package half a second."""

OF_SPARK = ("land.task.worker_daemon", "land.spark.patience")
"""Import it to have it, or to extend its classes, and are themselves imported where they are used."""

HEAVY_FOR_WORKERS = [*NEVER_AT_IMPORT, "dagster", "pydantic", "confluent_kafka"]
"""What a Python worker of Spark never imports on its way through the pipeline."""

HEAVY_FOR_A_LOOK = ["dagster", "pyspark", "pyarrow", "boto3", "confluent_kafka"]
"""What a command that only reads a configuration never imports: each costs it a tenth of a second to half of one."""

HEAVY_FOR_HELP = ["s3lake.config.model", "s3lake.config.load", "yaml", "msgspec", "sqlglot"]
"""What a command that only prints its help never imports: its configuration takes half a second of CPU."""

WITHOUT_CONFIGURATION = ("land.task", "land.sql")
"""Stages after `config`, which know it as little as those before it: `binding` gives them plain values."""

NAMED_TWICE: set[str] = set()
"""Classes that have yet to get a name of their own. Nothing is added here."""

FUNCTIONS_NAMED_TWICE = {
    "main": "where a process begins, as Python's own documentation calls it",
    "read": "a converter: `CONVERTERS` has its module, and calls its `read`",
    "read_connector": "a dialect of Kafka Connect: `config.load` has its module, and calls its `read_connector`",
}
"""Public functions that are defined in several modules, and why: they are implementations of one interface."""

MODULES_NAMED_TWICE = {
    "offsets": "`source.offsets` has the protocol, each source the offsets that implement it",
    "reader": "each source has a reader, which implements the protocol of `source.record_batches`",
}
"""Names of modules that exist several times, and why."""

HALF = "_with_schema"
"""A transform has a half in `families.connect`, and one for records with a schema in `families.connect_with_schema`."""

PRIVATE = {
    "index.store.private_botocore": "of botocore",
    "land.spark.private_pyspark": "of PySpark",
    "orchestration.private_dagster": "of Dagster, for definitions and sensors",
    "orchestration.preload.private_run_launchers": "of Dagster, in processes that load no definitions",
}
"""The only modules that use what other packages keep private, each with the reason of each use in it."""

LONGEST = 400
LONGER: dict[str, tuple[int, str]] = {}
"""Files that may grow past `LONGEST` lines, to which size, and why they are still one idea."""


class Import(NamedTuple):
    """`importer` imports `imported`, both without `s3lake.` where they are ours."""

    importer: str
    imported: str
    line: int
    types_only: bool
    at_import: bool

    def __str__(self) -> str:
        return f"{self.importer}:{self.line} imports {self.imported}"


def _modules() -> dict[str, Path]:
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        found[".".join(part for part in parts if part != "__init__")] = path
    return found


MODULES = _modules()


_BLOCKS = ("body", "handlers", "orelse", "finalbody", "cases")
"""What of a statement holds statements."""


def _imports(module: str) -> Iterator[Import]:
    def visit(node: ast.AST, types_only: bool, at_import: bool) -> Iterator[Import]:
        if isinstance(node, ast.Import | ast.ImportFrom):
            for name in _named(node):
                yield Import(module, name, node.lineno, types_only, at_import)
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            types_only = True
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            at_import = False
        for block in _BLOCKS:
            for child in getattr(node, block, ()):
                yield from visit(child, types_only, at_import)

    yield from visit(ast.parse(MODULES[module].read_text(encoding="utf-8")), False, True)


def _named(node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    """What an import statement names: our modules without `s3lake.`, anything else by its top-level package."""
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    else:
        assert node.level == 0, "TID: relative imports are not used"
        names = [f"{node.module}.{alias.name}" for alias in node.names]
    for name in names:
        top, _, rest = name.partition(".")
        if top != "s3lake":
            yield top
            continue
        # `from s3lake.hours import split` names a module and something in it, `from s3lake import hours` only a module.
        yield rest if rest in MODULES else rest.rpartition(".")[0]


@functools.cache
def _every() -> list[Import]:
    """All imports of the package: when the first test asks, for every process of the suite collects this module."""
    return [found for module in MODULES for found in _imports(module)]


def _ours() -> list[Import]:
    return [found for found in _every() if found.imported in MODULES]


def _within(module: str, rooms: Collection[str]) -> bool:
    return any(module == room or module.startswith(f"{room}.") for room in rooms)


@functools.cache
def _room(module: str) -> str:
    """Return the innermost room of a module."""
    return max((room for room in ROOMS if _within(module, [room])), key=len, default="")


def test_every_module_has_its_room() -> None:
    assert {_room(module) for module in MODULES} - {""} == set(ROOMS)
    doors = [module for module in MODULES if module and not _room(module)]
    assert [module for module in doors if MODULES[module].read_text(encoding="utf-8")] == []


@pytest.mark.parametrize("top", ["s3lake", "s3lake_tests"])
def test_every_directory_of_modules_is_a_package(top: str) -> None:
    """Without `__init__.py` pytest imports a conftest.py a second time, under a shorter name."""
    with_modules = {path.parent for path in (ROOT / top).rglob("*.py")}
    within = {
        parent for path in with_modules for parent in (path, *path.parents) if (ROOT / top) in (parent, *parent.parents)
    }
    assert [str(path) for path in sorted(within) if not (path / "__init__.py").is_file()] == []


def test_modules_import_only_from_rooms_to_their_left() -> None:
    # The package itself holds the public names, looked up when one is used.
    against = [
        found
        for found in _ours()
        if found.importer
        and _room(found.importer) != _room(found.imported)
        and (not found.imported or ROOMS.index(_room(found.imported)) > ROOMS.index(_room(found.importer)))
    ]
    assert [str(found) for found in against if (found.importer, found.imported) not in TO_THE_RIGHT] == []
    used = {(found.importer, found.imported) for found in against}
    assert used == TO_THE_RIGHT.keys(), "an exception that nothing needs any more"
    assert [str(found) for found in against if found.at_import and not found.types_only] == []


def test_no_modules_import_each_other_in_a_circle_for_types_or_in_a_function_either() -> None:
    imported: dict[str, set[str]] = {module: set() for module in MODULES}
    for found in _ours():
        # The package itself holds the public names, looked up when one is used.
        if found.importer and found.importer != found.imported:
            imported[found.importer].add(found.imported)
    graphlib.TopologicalSorter(imported).prepare()


def test_no_stage_knows_a_configuration() -> None:
    stages = [found for found in _ours() if _within(found.importer, WITHOUT_CONFIGURATION)]
    assert [str(found) for found in stages if _within(found.imported, ["config", "land.request.stage_values"])] == []


def test_the_package_itself_imports_none_of_its_modules() -> None:
    assert [str(found) for found in _ours() if not found.importer and found.at_import and not found.types_only] == []


def test_only_orchestration_knows_dagster() -> None:
    users = [found for found in _every() if found.imported.startswith("dagster")]
    assert [str(found) for found in users if not _within(found.importer, DAGSTER)] == []


def test_verify_imports_only_what_it_may() -> None:
    shared = [one for one in _ours() if _room(one.importer) == "lake.verify" and _room(one.imported) != "lake.verify"]
    others = [one for one in shared if one.imported not in VERIFY_MAY_IMPORT and _room(one.imported) != "lake.objects"]
    exceptions = {(importer, imported) for importer, names in VERIFY_SHARES.items() for imported in names}
    assert {(one.importer, one.imported) for one in others} == exceptions
    assert [str(one) for one in shared if _within(one.imported, ["config"]) and not one.types_only] == []
    unused = [name for name in VERIFY_MAY_IMPORT if not any(_within(one.imported, [name]) for one in shared)]
    assert unused == [], "nothing needs these any more"


def test_the_reader_of_objects_imports_documents_of_the_index_and_nothing_else() -> None:
    imported = {found.imported for found in _ours() if _room(found.importer) == "lake.objects"}
    assert {name for name in imported if _room(name) != "lake.objects"} == OBJECTS_KNOWS


def test_heavy_packages_are_imported_where_they_are_used() -> None:
    heavy = [
        found
        for found in _every()
        if found.imported in NEVER_AT_IMPORT and not found.types_only and found.importer not in OF_SPARK
    ]
    assert [str(found) for found in heavy if found.at_import] == []


@pytest.mark.long
def test_workers_import_nothing_heavy() -> None:
    imported = "sys, s3lake.land.task.pipeline, s3lake.index.store.s3_store"
    program = f"import {imported}; print(*set({HEAVY_FOR_WORKERS}) & sys.modules.keys())"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.split() == []


NATIVE = """
kafka: {bootstrap_servers: "127.0.0.1:1"}
sinks:
  - {name: events, topics: [orders], bucket: lake, start: 2026-11-20T00, format: {type: parquet},
     converter: {value: avro, registry: {url: "http://127.0.0.1:1"}},
     transforms: [{type: "InsertField$Value", options: {static.field: source, static.value: kafka}}]}
  - {name: copies, topics: [clicks], bucket: lake, start: 2026-11-20T00, prefix: copies,
     format: {type: parquet}, columns: {at: timestamp}, sql: {where: "at > 1"}}
"""
_LOOK = """
import sys
from s3lake import cli
sys.argv = sys.argv[1:]
try:
    cli.main()
except SystemExit as ended:
    print(ended.code, *sorted(set({heavy}) & sys.modules.keys()), file=sys.stderr)
"""


@pytest.mark.long
@pytest.mark.parametrize(
    "arguments",
    slow_after(1, "the same imports", ["check {native}", "check {connector} --all"]),
)
def test_a_command_that_only_reads_a_configuration_imports_nothing_heavy(arguments: str, tmp_path: Path) -> None:
    native, connector = tmp_path / "s3lake.yaml", ROOT / "s3lake_tests" / "config" / "public" / "quickstart.properties"
    native.write_text(NATIVE)
    words = arguments.format(native=native, connector=connector).split()
    command = [sys.executable, "-c", _LOOK.format(heavy=HEAVY_FOR_A_LOOK), "s3lake", *words]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ran.stderr.splitlines()[-1].split() == ["0"], ran.stderr


@pytest.mark.long
@pytest.mark.parametrize("arguments", ["--help", "land --help"])
def test_help_imports_no_configuration(arguments: str) -> None:
    heavy = [*HEAVY_FOR_A_LOOK, *HEAVY_FOR_HELP]
    command = [sys.executable, "-c", _LOOK.format(heavy=heavy), "s3lake", *arguments.split()]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ran.stderr.splitlines()[-1].split() == ["0"], ran.stderr


@pytest.mark.parametrize("module", [name for name in MODULES if _within(name, DAGSTER) and name != "demo.run_demo"])
def test_annotations_that_dagster_reads_are_no_strings(module: str) -> None:
    # `from __future__ import annotations` makes them strings, and Dagster then refuses a context's type.
    assert "__future__" not in {found.imported for found in _every() if found.importer == module}


def test_structs_are_decoded_by_decoders_that_are_made_at_import() -> None:
    """msgspec 0.22 ends the process, with a signal, where two threads meet a type of struct for the first time."""
    met = re.compile(r"\.decode\(.*\btype=[A-Z_]")
    assert [(name, found[0]) for name, path in _modules().items() for found in met.finditer(path.read_text())] == []


def test_no_two_classes_have_one_name() -> None:
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in MODULES.values()]
    names = Counter(node.name for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    assert {name for name, number in names.items() if number > 1} == NAMED_TWICE


def test_public_functions_have_one_name_only_as_implementations_of_one_interface() -> None:
    functions: dict[str, set[str]] = {}
    for module, path in MODULES.items():
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                functions.setdefault(node.name, set()).add(module.removesuffix(HALF))
    assert {name for name, modules in functions.items() if len(modules) > 1} == FUNCTIONS_NAMED_TWICE.keys()


def test_modules_have_one_name_only_as_implementations_of_one_interface() -> None:
    names = Counter(path.stem for path in MODULES.values() if path.stem != "__init__")
    assert {name for name, number in names.items() if number > 1} == MODULES_NAMED_TWICE.keys()


def _private_uses(module: str) -> Iterator[str]:
    """Yield attributes and modules with a leading underscore that the module itself does not define."""
    tree = ast.parse(MODULES[module].read_text(encoding="utf-8"))
    nodes = list(ast.walk(tree))
    own = {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    own |= {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    own |= {node.attr for node in nodes if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "self"}
    own |= {"_replace", "_asdict", "_exit"}  # documented of named tuples, and of `os`
    for node in nodes:
        match node:
            case ast.Attribute(value=ast.Name("KafkaError")):
                continue  # librdkafka documents them
            case ast.Attribute(attr=name):
                names = [name]
            case ast.Call(func=ast.Name("getattr"), args=[_, ast.Constant(str(name)), *_]):
                names = [name]
            case ast.ImportFrom(module=str(path)) if path != "__future__":
                names = path.split(".")
            case _:
                continue
        yield from (name for name in names if re.match("_[^_]", name) and name not in own)


def test_private_parts_of_other_packages_are_used_in_modules_of_their_own() -> None:
    uses = {module: sorted(set(_private_uses(module))) for module in MODULES}

    assert {module: names for module, names in uses.items() if names and module not in PRIVATE} == {}
    assert [module for module in PRIVATE if not uses[module]] == []


def test_files_are_one_idea_long() -> None:
    for path in MODULES.values():
        name = path.relative_to(PACKAGE).as_posix()
        lines = len(path.read_text(encoding="utf-8").splitlines())
        assert lines <= LONGER.get(name, (LONGEST, ""))[0], f"{name} has {lines} lines: two ideas?"


# Beside the package


def _imported(directory: str) -> set[str]:
    """The packages and modules that the files of a directory import, at any place in them."""
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in (ROOT / directory).rglob("*.py")]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    return names | {str(node.module) for node in nodes if isinstance(node, ast.ImportFrom)}


@pytest.mark.parametrize(
    ("directory", "strangers"),
    [
        ("s3lake", ("s3lake_tests", "benchmarks", "trials")),
        ("benchmarks", ("s3lake_tests", "trials")),
        ("s3lake_tests", ("benchmarks", "trials")),
        ("docs", ("s3lake_tests", "benchmarks", "trials")),
        ("release", ("s3lake_tests", "benchmarks", "trials")),
    ],
)
@pytest.mark.long
def test_nothing_imports_trials_and_benchmarks_import_no_tests(directory: str, strangers: tuple[str, ...]) -> None:
    names = _imported(directory) - {"s3lake_tests.kit.s3"} if directory == "benchmarks" else _imported(directory)
    assert [name for name in sorted(names) if name.partition(".")[0] in strangers] == []  # kit.s3: the S3 servers


def test_no_two_helpers_of_tests_have_one_name() -> None:
    """A class `Test…` is left out: its name is read after the name of its module."""
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in (ROOT / "s3lake_tests").rglob("*.py")]
    names = Counter(node.name for tree in trees for node in tree.body if isinstance(node, ast.ClassDef))
    assert [name for name, number in names.items() if number > 1 and not name.startswith("Test")] == []


# Everything in the repository


def _files() -> list[Path]:
    """What git knows here, or would if it were added."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    if listed.returncode != 0:
        pytest.skip("no git here, or no clone")
    paths = {ROOT / os.fsdecode(name) for name in listed.stdout.split(b"\0") if name}
    return sorted(path for path in paths if path.is_file())


@functools.cache
def _texts() -> list[tuple[str, str]]:
    contents = [(path.relative_to(ROOT).as_posix(), path.read_bytes()) for path in _files() if path != Path(__file__)]
    return [(name, data.decode("utf-8")) for name, data in contents if b"\0" not in data]


def test_no_file_names_a_path_of_a_developers_machine() -> None:
    homes = r"(?<![\w.$}])/(?:home|Users)/[a-z]\w*|(?<![\w.$}])/root/|[A-Z]:\\Users"
    here = "|".join(re.escape(str(path)) for path in (ROOT, Path(sys.prefix)) if len(path.parts) > 2)
    pattern = re.compile(f"{homes}|(?:{here})(?![\\w-])")
    assert [f"{name}: {found[0]}" for name, text in _texts() for found in pattern.finditer(text)] == []


def test_no_file_names_the_index_that_packages_come_from() -> None:
    options = r"--(?:extra-)?index-url|--find-links|--trusted-host|\bGOPROXY\b|PIP_(?:EXTRA_)?INDEX_URL"
    addresses = r"https?://[^\s\"'<>)]*/(?:simple|maven2?|pypi|goproxy|artifactory|nexus)\b"
    pattern = re.compile(f"{options}|{addresses}")
    assert [f"{name}: {found[0]}" for name, text in _texts() for found in pattern.finditer(text)] == []


def test_no_file_names_a_host_that_this_machine_gets_packages_from() -> None:
    settings = [value for name, value in os.environ.items() if re.search("INDEX|PROXY|FIND_LINKS|MIRROR", name.upper())]
    hosts = {urlsplit(part).hostname for value in settings for part in re.split(r"[\s,|]+", value) if "://" in part}
    hosts -= {None, "localhost", "127.0.0.1"}
    # Whatever the host is called, it does not belong into the message.
    assert [name for name, text in _texts() if any(host and host in text for host in hosts)] == []
