"""What the source cites is in ``references.bib``, and nothing else is."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
BIBLIOGRAPHY = (ROOT / "references.bib").read_text()
ENTRIES = re.findall(r"@(\w+)\{(\w+),(.*?)\n\}", BIBLIOGRAPHY, flags=re.DOTALL)


def cited():
    keys = {}
    for path in sorted((ROOT / "src").rglob("*.py")):
        for key in re.findall(r"\[([A-Z]\w*\d{4}[a-z]?)\]_", path.read_text()):
            keys.setdefault(key, path.name)
    return keys


def test_the_keys_cited_are_the_keys_listed():
    listed = [key for _, key, _ in ENTRIES]
    assert len(listed) == len(set(listed)) == BIBLIOGRAPHY.count("\n@")
    assert sorted(cited()) == listed  # in alphabetical order too


def test_every_entry_says_who_what_where_and_when():
    where = {
        "article": "journal", "inproceedings": "booktitle", "book": "publisher",
        "phdthesis": "school", "misc": "eprint",
    }  # fmt: skip
    for kind, key, body in ENTRIES:
        for field in ("author", "title", "year", where[kind]):
            assert re.search(rf"^\s+{field}\s*=\s*\{{.+", body, flags=re.MULTILINE), (key, field)
        author = re.search(r"author\s*=\s*\{([\w-]+)", body).group(1).replace("-", "")
        year = re.search(r"year\s*=\s*\{(\d{4})\}", body).group(1)
        assert re.fullmatch(author + year + "[b-z]?", key), key  # b: a second one that year


def test_no_citation_lacks_its_underscore():
    # Outside of a link a key is easily mistyped: [Key2022] alone reconciles with nothing.
    for path in (ROOT / "src").rglob("*.py"):
        loose = re.findall(r"\[[A-Z]\w*(?:19|20)\d{2}[a-z]?\](?!_)", path.read_text())
        assert not loose, (path.name, loose)
