"""The fenced blocks of code in the documents."""

import functools
import re
from dataclasses import dataclass

from s3lake_tests.docs.documents import DOCUMENTS, ROOT

BLOCK = re.compile(r"^(?P<fence>```+)(?P<language>\w*)[ ]*(?P<title>[^\n]*)\n(?P<text>.*?)^(?P=fence)$", re.M | re.S)


@dataclass(frozen=True)
class CodeBlock:
    """A fenced block of a document."""

    document: str
    line: int
    language: str
    title: str
    text: str

    def __str__(self) -> str:
        return f"{self.document}:{self.line}"


@functools.cache
def _every_block() -> list[CodeBlock]:
    found = []
    for document in DOCUMENTS:
        text = document.read_text("utf-8")
        for block in BLOCK.finditer(text):
            name, line = document.relative_to(ROOT).as_posix(), text.count("\n", 0, block.start()) + 1
            found.append(CodeBlock(name, line, block["language"], block["title"], block["text"]))
    return found


def find_blocks(*languages: str) -> list[CodeBlock]:
    return [block for block in _every_block() if block.language in languages]


def read_title(block: CodeBlock) -> str:
    return block.title.removeprefix("title=").strip('"')
