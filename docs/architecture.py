"""Draw `design/architecture.svg`: the nine rooms of the package, and what each takes from those before it.

Rooms and arrows are read from the imports. `ROOMS` and `TAKES` have the words; a test requires them to be exact.
Run it as `python docs/architecture.py`.
"""

import ast
from collections.abc import Iterable
from html import escape
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "s3lake"
PICTURE = Path(__file__).parent / "design" / "architecture.svg"

ROOMS = {
    "records": ("bytes of Kafka", "to bytes of a file"),
    "config": ("what users write,", "and its model"),
    "source": ("offsets and readers", "of Kafka and Iggy"),
    "index": ("what is landed,", "exactly once"),
    "lake": ("what is done with", "landed hours"),
    "land": ("Kafka to S3,", "changes of hours"),
    "orchestration": ("assets, sensors and", "jobs of Dagster"),
    "demo": ("all servers on", "one machine"),
    "cli": ("commands", "of a shell"),
}
"""The rooms in their order, and what each is, in two lines."""

TAKES = {
    ("records", "config"): "names of formats, converters, transforms",
    ("records", "source"): "dead letters",
    ("records", "index"): "types and changes of columns",
    ("records", "lake"): "types of columns, schemas",
    ("records", "land"): "conversions, object keys, files",
    ("records", "orchestration"): "docs of columns from a registry",
    ("records", "demo"): "elements of a layout",
    ("records", "cli"): "clients of a registry",
    ("config", "source"): "the address of a source",
    ("config", "index"): "the sink, its key space",
    ("config", "lake"): "the sink, tables, forwards",
    ("config", "land"): "the sink",
    ("config", "orchestration"): "the configuration",
    ("config", "demo"): "a configuration to run",
    ("config", "cli"): "the configuration, its findings",
    ("source", "index"): "offsets, offset ranges",
    ("source", "lake"): "offsets of a topic",
    ("source", "land"): "offsets, record batches",
    ("source", "orchestration"): "topics, lag",
    ("source", "cli"): "topics, offsets",
    ("index", "lake"): "tiles, manifests, objects",
    ("index", "land"): "tiles, attempts, uploads, commits",
    ("index", "orchestration"): "tiles, hours that are due",
    ("index", "demo"): "connections to S3",
    ("index", "cli"): "tiles, manifests, trial of a store",
    ("lake", "land"): "readers of objects, tables",
    ("lake", "orchestration"): "readers, destinations",
    ("lake", "cli"): "verify, tables, metrics",
    ("land", "orchestration"): "landings, changes of hours",
    ("land", "demo"): "Spark's jars",
    ("land", "cli"): "landings, changes, adoption",
    ("orchestration", "demo"): "the assets",
    ("orchestration", "cli"): "topics, failed runs",
    ("demo", "cli"): "the demo",
}
"""What the second room takes from the first: what goes along the arrow between them."""

BEGIN = (
    "Where to begin reading",
    "1. land/hour/landing.py: one landing, from offsets to the commit",
    "2. land/task/pipeline.py: one Spark task",
    "3. index/commit/protocol.py: one commit",
    "4. config/model/sink_settings.py: what a sink can be",
    "5. orchestration/build.py: the assets of a configuration",
    "",
    "A word is what the room below it takes from the room left of it.",
    "Nothing is drawn below the boxes: no room imports from a later one.",
)

_WIDTH, _HEIGHT, _BOX = 134, 66, (122, 54)
_STYLE = """
.back{fill:#ffffff}.box{fill:#e0e7ff;stroke:#6366f1}.name{fill:#1e1b4b;font-weight:600;font-size:14px}
.note{fill:#3730a3;font-size:11px}.word{fill:#1f2937;font-size:11px}.line{stroke:#cbd5e1;fill:none}
.text{fill:#1f2937;font-size:13px}
@media (prefers-color-scheme: dark){
.back{fill:#0f172a}.box{fill:#312e81;stroke:#818cf8}.name{fill:#eef2ff}.note{fill:#c7d2fe}
.word{fill:#e2e8f0}.line{stroke:#334155}.text{fill:#e2e8f0}}
"""


def find_arrows(package: Path = PACKAGE) -> set[tuple[str, str]]:
    """Return the pairs of rooms of which the second imports from the first, types included."""
    arrows = set()
    for path in package.rglob("*.py"):
        importer = path.relative_to(package).parts[0]
        if importer in ROOMS:
            names = _find_imported(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
            arrows |= {(room, importer) for room in names if room in ROOMS and room != importer}
    return arrows


def _find_imported(nodes: Iterable[ast.AST]) -> set[str]:
    """Return the first part, after `s3lake.`, of each name that is imported."""
    names: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module:
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return {name.split(".")[1] for name in names if name.startswith("s3lake.")}


def find_rooms(package: Path = PACKAGE) -> set[str]:
    """Return the rooms of the package: its directories with code, except for `text`, which any room may use."""
    return {path.relative_to(package).parts[0] for path in package.glob("*/**/*.py")} - {"text"}


def draw(arrows: Iterable[tuple[str, str]]) -> str:
    """Return the picture as SVG: rooms on the diagonal, and a word for each arrow above it.

    Raises:
        KeyError: an arrow has no word in `TAKES`.
    """
    order = list(ROOMS)
    width, height = _WIDTH * len(order) + 12, _HEIGHT * len(order) + 12
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="system-ui, sans-serif">',
        f"<title>Nine rooms, and what each takes from those before it</title><style>{_STYLE}</style>",
        f'<rect class="back" width="{width}" height="{height}" rx="8"/>',
    ]
    cells = sorted((order.index(giver), order.index(taker)) for giver, taker in arrows)
    parts += [_draw_arrow(giver, taker) for giver, taker in cells]
    parts += [_draw_words(giver, taker, TAKES[order[giver], order[taker]]) for giver, taker in cells]
    parts += [_draw_room(number, name) for number, name in enumerate(order)]
    top = height - 24 * len(BEGIN)
    parts += [
        f'<text class="{"text" if number else "name"}" x="20" y="{top + 24 * number}">{escape(line)}</text>'
        for number, line in enumerate(BEGIN)
    ]
    return "\n".join([*parts, "</svg>", ""])


def _find_middle(column: int, row: int) -> tuple[int, int]:
    return 6 + _WIDTH * column + _WIDTH // 2, 6 + _HEIGHT * row + _HEIGHT // 2


def _draw_room(number: int, name: str) -> str:
    (x, y), (width, height) = _find_middle(number, number), _BOX
    first, second = ROOMS[name]
    return (
        f'<rect class="box" x="{x - width // 2}" y="{y - height // 2}" width="{width}" height="{height}" rx="6"/>'
        f'<text class="name" x="{x}" y="{y - 8}" text-anchor="middle">{name}/</text>'
        f'<text class="note" x="{x}" y="{y + 7}" text-anchor="middle">{escape(first)}</text>'
        f'<text class="note" x="{x}" y="{y + 20}" text-anchor="middle">{escape(second)}</text>'
    )


def _draw_arrow(giver: int, taker: int) -> str:
    """Return the line of an arrow: from the giver to the right, then down to the taker."""
    (left, y), (x, bottom) = _find_middle(giver, giver), _find_middle(taker, taker)
    tip = bottom - _BOX[1] // 2
    return (
        f'<path class="line" d="M{left + _BOX[0] // 2} {y} H{x} V{tip}"/>'
        f'<path class="line" d="M{x - 4} {tip - 6} L{x} {tip} L{x + 4} {tip - 6}"/>'
    )


def _draw_words(giver: int, taker: int, words: str) -> str:
    x, y = _find_middle(taker, giver)
    lines = _wrap(words)
    top = y - 7 * (len(lines) - 1)
    wide, high = 6 * max(map(len, lines)) + 6, 14 * len(lines) + 2
    background = f'<rect class="back" x="{x - wide // 2}" y="{top - 11}" width="{wide}" height="{high}"/>'
    return background + "".join(
        f'<text class="word" x="{x}" y="{top + 14 * number}" text-anchor="middle">{escape(line)}</text>'
        for number, line in enumerate(lines)
    )


def _wrap(words: str, most: int = 20) -> list[str]:
    """Return the words in lines of at most `most` characters."""
    lines = [""]
    for word in words.split():
        longer = f"{lines[-1]} {word}".strip()
        if len(longer) > most and lines[-1]:
            lines.append(word)
        else:
            lines[-1] = longer
    return lines


if __name__ == "__main__":
    PICTURE.write_text(draw(find_arrows()), encoding="utf-8")
