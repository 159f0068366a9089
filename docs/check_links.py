"""The links of all pages: files that exist, and headings of pages."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent


def text_of(page):
    """A page without its blocks and spans of code."""
    return re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(), flags=re.DOTALL)


def anchors(page):
    """The names that GitHub gives to the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def findings():
    """Sentences about links that lead nowhere, in pages at the top, of docs/ and results/, and in the folders' READMEs."""
    pages = [*ROOT.glob("*.md"), *ROOT.glob("*/README.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("results/**/*.md")]
    for page in sorted(set(pages)):
        text = text_of(page)
        links = re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(r"^\[[^\]]+\]: (\S+)$", text, re.MULTILINE)
        for link in links:
            if re.match(r"[a-z]+:", link):
                continue
            path, _, anchor = link.partition("#")
            target = (page.parent / path).resolve() if path else page
            if not target.exists():
                yield f"{page.relative_to(ROOT)}: the link '{link}' leads to no file"
            elif anchor and target.suffix == ".md" and anchor not in anchors(target):
                yield f"{page.relative_to(ROOT)}: the link '{link}' leads to no heading"
