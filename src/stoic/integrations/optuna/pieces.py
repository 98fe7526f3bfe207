"""Long texts in system attributes of a study, in pieces that any storage holds."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from optuna.study import Study

from stoic.integrations.optuna.internals import storage_of, study_id

_PIECE = 30_000  # letters of an attribute: a text in MySQL has at most 65,535 bytes
_PIECES = 1_000


def study_attributes(study: Study) -> dict[str, Any]:
    """System attributes of a study, all as of one moment."""
    return storage_of(study).get_study_system_attrs(study_id(study))


def write_text(
    study: Study, name: str, text: str, head: Mapping[str, Any], slot: str | None = None
) -> None:
    """Store a text and its ``head`` in the place of earlier ones.

    The head is written last, and names the pieces: a writer that is killed before leaves the
    earlier text, as long as that has another ``slot``. By default the slot is a digest of the text,
    so that pieces of two writers never mix. Attributes cannot be deleted: what is written often
    needs few slots, and mixed pieces are read as none.
    """
    storage, key = storage_of(study), study_id(study)
    digest = _digest(text)
    slot = slot or digest[:12]
    pieces = [text[i : i + _PIECE] for i in range(0, len(text), _PIECE)]
    for piece_name, piece in zip(_names(name, slot, len(pieces)), pieces, strict=True):
        storage.set_study_system_attr(key, piece_name, piece)
    whole = {**head, "of": slot, "pieces": len(pieces), "digest": digest}
    storage.set_study_system_attr(key, name, whole)


def read_head(attributes: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the head of a text; empty if there is none."""
    head = attributes.get(name)
    return head if isinstance(head, dict) and isinstance(head.get("pieces"), int) else {}


def read_text(attributes: Mapping[str, Any], name: str) -> str:
    """Return a text; empty if there is none, or not all of it."""
    if not (head := read_head(attributes, name)):
        return ""
    names = _names(name, head.get("of"), head["pieces"])
    text = "".join(str(attributes.get(each, "")) for each in names)
    digest = _digest(text)  # which earlier versions did not store
    return text if head.get("digest", digest) == digest else ""


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()


def _names(name: str, slot: object, pieces: int) -> list[str]:
    # At most _PIECES of them, whatever number a storage says
    return [f"{name}:{slot}:{k}" for k in range(min(pieces, _PIECES))]
