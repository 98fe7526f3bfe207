"""Pictures of a study as files, and their colours."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from stoic.refusal import RefusalError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Every kind of colour vision distinguishes blue and vermilion, and sizes and shapes.
TRUSTED, REJECTED, EXPECTED = "#0072B2", "#D55E00", "#8a8a8a"


def check_picture(path: Path | None) -> None:
    """Refuse a picture that could not be written, if any is asked for, before it is computed."""
    if path is None:
        return
    from matplotlib.backend_bases import FigureCanvasBase

    formats = FigureCanvasBase.get_supported_filetypes()
    if path.suffix[1:].lower() not in formats:
        raise RefusalError(f"{str(path)!r} must end with a format of pictures: .png, .svg or .pdf.")
    if not path.parent.is_dir():
        raise RefusalError(f"There is no directory {str(path.parent)!r} for the picture.")


def write_picture(picture: Figure, path: Path) -> None:
    """Write a picture into a file, whose suffix determines the format."""
    try:
        picture.savefig(path, dpi=150)
    except OSError as error:
        raise RefusalError(f"Cannot write {str(path)!r}: {error.strerror}.") from error
