"""XML files from elsewhere, read without what makes XML dangerous."""

from pathlib import Path
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from medgrape.data.label_files import SourceError, read_text

DEEPEST = 100
"""Elements in elements; a file that goes deeper is no list of films."""


def read_xml(path: Path) -> Element:
    """The file's root; one that declares a document type is refused, and with it every entity that could grow."""
    builder, parser, depth = TreeBuilder(), expat.ParserCreate("utf-8"), 0

    def refuse(*_: object) -> None:
        raise SourceError(f"{path} declares a document type, which no annotation tool writes; it is not read.")

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > DEEPEST:
            raise SourceError(f"{path} nests elements more than {DEEPEST} deep, which no annotation tool does.")
        builder.start(name, attributes)

    def end(name: str) -> None:
        nonlocal depth
        depth -= 1
        builder.end(name)

    parser.StartDoctypeDeclHandler = refuse
    parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = start, end, builder.data
    try:
        parser.Parse(read_text(path).encode(), True)
    except expat.ExpatError as error:
        raise SourceError(f"{path} is no XML: {error}.") from error
    return builder.close()
