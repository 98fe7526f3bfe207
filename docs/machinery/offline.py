"""The search of the site without a network: our script in place of one that would be loaded."""

from __future__ import annotations

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.pages import Page
from mkdocs.utils import get_relative_url

LOADED = "https://unpkg.com/iframe-worker/shim"  # by the theme's plugin `offline`
OURS = "javascripts/worker.js"


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Put our script where a page of the theme loads one from the network."""
    return _ours(output, get_relative_url(OURS, page.url))


def on_post_template(output_content: str, template_name: str, config: MkDocsConfig) -> str:
    """Do the same in the page of what is not found, which is served for any address."""
    return _ours(output_content, f"/{OURS}") if template_name == "404.html" else output_content


def _ours(html: str, ours: str) -> str:
    if LOADED not in html:
        raise ValueError(f"The theme no longer loads {LOADED}: see whether the search needs ours.")
    return html.replace(LOADED, ours)
