"""What a release has to pass, in a directory and environments of its own: ``make release-check``.

Builds the distributions from what git knows, looks into them, installs the wheel alone, and runs
what the README and the pages of the documentation show with it. Nothing is imported from ``src``.
Only pip may use the network: everything else runs with proxies that lead nowhere. The tests of the
code itself are those of ``make test``.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tarfile
import tempfile
import time
import venv
import zipfile
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).resolve().parent.parent
LARGEST_WHEEL = 2e6  # bytes
IN_THE_WHEEL = {".py", ".typed", ".html"}  # no figures, no tables of a paper
IN_THE_SOURCES = ("LICENSE", "README.md", "CITATION.cff", "references.bib", "pyproject.toml")
NOWHERE = "http://127.0.0.1:9"  # the port "discard": nobody listens
OFFLINE = {f"{kind}_proxy": NOWHERE for kind in ("http", "https", "ftp", "all")}
THREADS = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL")}
# Tests of what is shown to people; all else is the code's.
SHOWN = ("test_docs.py", "test_start.py", "test_project.py", "examples")
# Extras that these need and that are small enough for a check.
EXTRAS = "sklearn,test,docs"

# Run by the environment's own interpreter: the licence of each distribution in it. Only permissive
# ones and the MPL, whose conditions end at its own files, may be needed by `pip install stoic`.
LICENCES = r"""
import importlib.metadata as metadata, re, sys
FREE = re.compile(r"\b(MIT|BSD|Apache|PSF|Python Software Foundation|ISC|MPL|Mozilla|HPND|CNRI"
                  r"|matplotlib|Zlib|0BSD|Unlicense)\b", re.I)
STRICT = re.compile(r"(?<!L)(?<!Lesser )\b(A?GPL|GNU (Affero )?General Public)", re.I)
unclear = []
for each in sorted(metadata.distributions(), key=lambda each: each.name.lower()):
    if each.name in ("pip", "setuptools"):
        continue
    has = each.metadata
    said = has.get("License-Expression") or "; ".join(
        line.rpartition("::")[2].strip() for line in has.get_all("Classifier", [])
        if line.startswith("License ::")) or (has.get("License") or "").partition("\n")[0]
    print(f"   {each.name} {each.version}: {said or 'no licence'}")
    # Where a choice is offered, one free side is enough.
    sides = [side for side in re.split(r"\bOR\b", said) if not STRICT.search(side)]
    if not any(FREE.search(side) for side in sides):
        unclear.append(each.name)
sys.exit(f"The licence is missing or not permissive: {', '.join(unclear)}." if unclear else 0)
"""

OURS = "import stoic; assert 'site-packages' in stoic.__file__, stoic.__file__"

# Run outside of the checkout: the Python of a page as one module, without the tests' own code.
PAGE = r"""
import re, sys, types
text = open(sys.argv[1], encoding="utf-8").read()
blocks = re.findall(r"^```python[^\n]*\n(.*?)^```\s*$", text, re.MULTILINE | re.DOTALL)
module = sys.modules["page"] = types.ModuleType("page")
for block in blocks:
    exec(compile(block, sys.argv[1], "exec"), module.__dict__)
print(f"   {len(blocks)} blocks ran")
"""


def main() -> None:
    """Run all steps; the first that fails ends it."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="release-") as name:
        workspace = Path(name)
        step("copy what git knows")
        checkout = workspace / "checkout"
        copy(checkout)

        step("build the source distribution and the wheel")
        builder = environment(workspace / "builder", "build>=1.2")
        run([builder, "-m", "build", "--outdir", workspace / "dist", checkout])
        (wheel,) = workspace.glob("dist/*.whl")
        (sources,) = workspace.glob("dist/*.tar.gz")
        look_into(wheel, sources)

        step("install the wheel alone; licences of what it needs")
        python = environment(workspace / "plain", wheel)
        run([python, "-m", "pip", "check"])
        run([python, "-c", LICENCES], cwd=workspace, offline=True)

        step("the README's Python, with the wheel alone")
        outside = workspace / "outside"
        outside.mkdir()
        run([python, "-c", OURS], cwd=outside)
        run([python, "-c", PAGE, checkout / "README.md"], cwd=outside, offline=True)

        step(f"install the extras {EXTRAS}")
        run([python, "-m", "pip", "install", "--quiet", f"{wheel}[{EXTRAS}]"])

        step("the README's command")
        run(readme_command(checkout), cwd=checkout, offline=True, first=python.parent)

        step("documentation, strictly, and every link of the site")
        run(["make", "docs", f"PYTHON={python}"], cwd=checkout, offline=True)
        wrong = bad_links(checkout / "site")
        if wrong:
            sys.exit(
                "Links of the site lead nowhere, or load from the network:\n" + "\n".join(wrong)
            )

        step("examples, first scripts and pages of the documentation, from the wheel")
        run([python, "-c", OURS], cwd=checkout)  # src lies here, but must not be what is tested
        tests = [f"tests/{each}" for each in SHOWN]
        command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not slow", *tests]
        run(command, cwd=checkout, offline=True, first=python.parent)
    print(f"== ready to be released, after {(time.monotonic() - began) / 60:.0f} minutes")


def step(what: str) -> None:
    """Announce a step."""
    print(f"== {what}", flush=True)


def run(
    command: list[object] | str,
    *,
    cwd: Path | None = None,
    offline: bool = False,
    first: Path | None = None,
) -> None:
    """Run a command, a text in a shell; ``first`` is searched for programs before all else."""
    unset = {"PYTHONPATH", "OPTUNA_STORAGE", "VIRTUAL_ENV"}
    setting = {key: value for key, value in os.environ.items() if key not in unset}
    setting |= THREADS | {"MPLBACKEND": "Agg", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    if offline:
        setting |= OFFLINE | {key.upper(): value for key, value in OFFLINE.items()}
        setting |= dict.fromkeys(("no_proxy", "NO_PROXY"), "localhost,127.0.0.1")
    if first is not None:
        setting["PATH"] = f"{first}{os.pathsep}{setting['PATH']}"
    words = ["bash", "-euc", command] if isinstance(command, str) else [str(w) for w in command]
    code = subprocess.run(words, cwd=cwd, env=setting).returncode
    if code:
        shown = command if isinstance(command, str) else shlex.join(words)
        sys.exit(f"Failed with exit code {code}: {shown.strip().partition(chr(10))[0][:200]}")


def copy(target: Path) -> None:
    """Copy the files that git knows, as they are now."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True)
    for name in filter(None, listed.stdout.decode().split("\0")):
        if (source := ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            (target / name).write_bytes(source.read_bytes())


def environment(where: Path, *requirements: object) -> Path:
    """Make a virtual environment; return its interpreter."""
    venv.create(where, with_pip=True)
    python = where / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    run([python, "-m", "pip", "install", "--quiet", *requirements])
    return python


def look_into(wheel: Path, sources: Path) -> None:
    """Check the size and the contents of the two distributions."""
    size = wheel.stat().st_size
    print(
        f"   {wheel.name}: {size / 1e6:.2f} MB; {sources.name}: {sources.stat().st_size / 1e6:.1f}"
    )
    if size > LARGEST_WHEEL:
        sys.exit(f"The wheel has {size / 1e6:.1f} MB; {LARGEST_WHEEL / 1e6:g} MB are the limit.")
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if ".dist-info/" not in name]
    odd = [name for name in names if Path(name).suffix not in IN_THE_WHEEL]
    odd += [name for name in names if not name.startswith("stoic/")]
    if odd:
        sys.exit(f"The wheel has what no user needs: {', '.join(odd)}.")
    with tarfile.open(sources) as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}
    if missing := {*IN_THE_SOURCES} - held:
        sys.exit(f"The source distribution lacks {', '.join(sorted(missing))}.")


def readme_command(checkout: Path) -> str:
    """Return what the README runs right after its installation."""
    readme = (checkout / "README.md").read_text(encoding="utf-8")
    found = re.search(r"^python3 -m venv .*&& pip install .* && (stoic .*)$", readme, re.MULTILINE)
    if found is None:
        sys.exit("The README has no line that installs stoic and then runs it.")
    return found[1]


class Page(HTMLParser):
    """Anchors, links, and what a page loads to be shown."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors = {"", "__top"}
        self.links: list[str] = []
        self.loads: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what an element refers to."""
        has = {key: value for key, value in attrs if value}
        self.anchors |= {has[key] for key in ("id", "name") if key in has}
        if tag == "a" and "href" in has:
            self.links.append(has["href"])
        elif "src" in has:
            self.loads.append(has["src"])
        elif tag == "link" and has.get("rel") in ("stylesheet", "icon", "preload"):
            self.loads.append(has["href"])


def bad_links(site: Path) -> list[str]:
    """List what leads to no file or no anchor of the site, and what is loaded from elsewhere."""
    # The page for what is not found is served at any depth, so its addresses are absolute.
    pages = {path: Page(path) for path in site.rglob("*.html") if path.name != "404.html"}
    wrong = []
    for path, page in pages.items():
        here = path.relative_to(site)
        wrong += [f"{here} loads {url}" for url in page.loads if urlsplit(url).netloc]
        for url in page.links + page.loads:
            parts = urlsplit(url)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target /= "index.html"
            known = pages.get(target)
            if not target.is_file() or (known and unquote(parts.fragment) not in known.anchors):
                wrong.append(f"{here}: {url}")
    return sorted({*wrong})


if __name__ == "__main__":
    main()
