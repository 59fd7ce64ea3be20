"""Hooks of MkDocs: table of contents, pages generated from code, links between files."""

import re
from pathlib import Path

import command_pages
import http_page
from contents import spread
from links import OTHER_FILES, ROOT, rewrite_links
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

import medgrape

API_PAGE, OTHER_NAMES = "reference/api.md", "<!-- every other public name -->"
SCRIPT = re.compile(r"<script\b[^>]*>.*?</script>", re.DOTALL)
EXTERNAL_SCRIPT = re.compile(r"""import\s*\(?[^;]*?["']https?://|src=["'](?:https?:)?//|src=["']["']""")
"""A script that is loaded from another host, or loads one."""


def made() -> dict[str, str]:
    """Return the Markdown of all generated pages."""
    beside = {page: rewrite_links((ROOT / name).read_text("utf-8"), name, page) for name, page in OTHER_FILES.items()}
    return beside | command_pages.pages() | http_page.pages()


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Replace the stars in the table of contents."""
    docs = Path(config.docs_dir)
    there = [path.relative_to(docs).as_posix() for kind in ("*.md", "*.ipynb") for path in docs.rglob(kind)]
    config.nav = spread(config.nav or [], [*there, *made()])
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages and the OpenAPI document."""
    for page, text in made().items():
        files.append(File.generated(config, page, content=text))
    files.append(File.generated(config, http_page.DESCRIPTION, abs_src_path=str(http_page.SOURCE)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001
    """Rewrite links that lead out of docs/; list the public names on the page of the API."""
    place = page.file.src_uri
    if place == API_PAGE:
        markdown = markdown.replace(OTHER_NAMES, _other_names(markdown))
    return markdown if page.file.generated_by else rewrite_links(markdown, f"docs/{place}", place)


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:  # noqa: ARG001
    """Remove scripts from other hosts in pages of notebooks (for diagrams, which we do not use)."""
    return SCRIPT.sub(lambda script: "" if EXTERNAL_SCRIPT.search(script[0]) else script[0], output)


def _other_names(markdown: str) -> str:
    left = [name for name in medgrape.__all__ if f"::: medgrape.{name}\n" not in markdown and name != "__version__"]
    return "\n\n".join(f"::: medgrape.{name}\n" for name in left)
