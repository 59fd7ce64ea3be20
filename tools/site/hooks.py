"""What MkDocs asks us while it builds the site: the contents, the pages made from code, links between files."""

import re
from pathlib import Path

import command_pages
import http_page
from contents import spread
from links import BESIDE, ROOT, rehomed
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

import medgrape

API_PAGE, OTHER_NAMES = "reference/api.md", "<!-- every other public name -->"
SCRIPT = re.compile(r"<script\b[^>]*>.*?</script>", re.DOTALL)
ELSEWHERE = re.compile(r"""import\s*\(?[^;]*?["']https?://|src=["'](?:https?:)?//|src=["']["']""")
"""A script that comes from another host, or brings one in."""


def made() -> dict[str, str]:
    """Page to Markdown, of all pages that no file in docs/ holds."""
    beside = {page: rehomed((ROOT / name).read_text("utf-8"), name, page) for name, page in BESIDE.items()}
    return beside | command_pages.pages() | http_page.pages()


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Spread the stars of the table of contents."""
    docs = Path(config.docs_dir)
    there = [path.relative_to(docs).as_posix() for kind in ("*.md", "*.ipynb") for path in docs.rglob(kind)]
    config.nav = spread(config.nav or [], [*there, *made()])
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made here, and the server's description for programs."""
    for page, text in made().items():
        files.append(File.generated(config, page, content=text))
    files.append(File.generated(config, http_page.DESCRIPTION, abs_src_path=str(http_page.SOURCE)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001
    """Mend links that lead out of docs/; name every public name on the page of the API."""
    place = page.file.src_uri
    if place == API_PAGE:
        markdown = markdown.replace(OTHER_NAMES, _other_names(markdown))
    return markdown if page.file.generated_by else rehomed(markdown, f"docs/{place}", place)


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:  # noqa: ARG001
    """Leave out what notebooks' pages would fetch from other hosts (a program for diagrams, which none of ours has)."""
    return SCRIPT.sub(lambda script: "" if ELSEWHERE.search(script[0]) else script[0], output)


def _other_names(markdown: str) -> str:
    left = [name for name in medgrape.__all__ if f"::: medgrape.{name}\n" not in markdown and name != "__version__"]
    return "\n\n".join(f"::: medgrape.{name}\n" for name in left)
