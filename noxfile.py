#!/usr/bin/env -S python3
# /// script
# dependencies = ["nox>=2025.2.9"]
# ///
"""Sessions for people who work with nox: commands of the Makefile in fresh environments."""

import nox

nox.needs_version = ">=2025.2.9"
nox.options.default_venv_backend = "uv|virtualenv"


def make(session: nox.Session, target: str, extra: str) -> None:
    """Install stoic from the checkout with an extra, and run a command of the Makefile."""
    session.install("-e", f".[{extra}]")
    session.run("make", target, "PYTHON=python", *session.posargs, external=True)


@nox.session
def check(session: nox.Session) -> None:
    """Lint, format, types."""
    make(session, "check", "test")


@nox.session(python=["3.11", "3.12", "3.13", "3.14"])
def test(session: nox.Session) -> None:
    """Run all tests but long ones, on each Python."""
    make(session, "test", "test")


@nox.session(default=False)
def docs(session: nox.Session) -> None:
    """Build the documentation site, into site/."""
    make(session, "docs", "docs")


if __name__ == "__main__":
    nox.main()
