"""The command ``stoic``: shared options and exit codes."""

from __future__ import annotations

import errno
import io
import os
import signal
import stat
import sys
from typing import Annotated

import typer

from stoic.printable import printable
from stoic.refusal import RefusalError

app = typer.Typer(
    name="stoic",
    help="Bayesian optimization that keeps working when its data lie.",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Begin with: stoic tune --param 'lr=float(0, 1)' -- python train.py --lr {lr}",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


_UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EPIPE)


def main() -> None:
    """Run the command line; a refused request ends with one sentence and exit code 2."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # the encoding may lack a letter
            stream.reconfigure(errors="backslashreplace")
    try:
        try:
            app()
        except SystemExit as ending:
            if not ending.code and sys.stdout is not None:
                sys.stdout.flush()  # here, where an error becomes a sentence
            raise
    except RefusalError as refusal:
        _complain(str(refusal))
        sys.exit(2)
    except OSError as error:
        # A closed terminal takes no summary: the trial is stored, and the exit code the signal's
        if error.errno == errno.EIO and _hung_up():
            sys.exit(128 + signal.SIGHUP)
        if error.errno not in _UNWRITABLE or error.filename is not None:
            raise
        _discard(1)  # else the rest is tried again at the end
        if error.errno == errno.EPIPE:  # its reader has left, and wants no sentence
            sys.exit(1)
        _complain(f"Cannot write the output: {error.strerror}.")
        sys.exit(2)


def _complain(sentence: str) -> None:
    try:
        print(printable(f"stoic: {sentence}"), file=sys.stderr, flush=True)
    except OSError:  # standard error is full, too: what is left is the exit code
        _discard(2)


def _discard(stream: int) -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream)


def _hung_up() -> bool:
    """Return True if the terminal was closed; then discard all further output."""
    closed = False
    for stream in (1, 2):
        # A terminal that was closed is still a device, and no terminal to isatty
        if stat.S_ISCHR(os.fstat(stream).st_mode) and not os.isatty(stream):
            _discard(stream)
            closed = True
    return closed


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        print(f"stoic {version('stoic')}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass
