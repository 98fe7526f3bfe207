"""Runs of Weights & Biases without its server: a place for them, and what their files hold."""

from __future__ import annotations

import json
import struct
import warnings

import pytest


def isolated(tmp_path, monkeypatch):
    """A fixture: W&B, whose files all go to directories of this test."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its own imports
        wandb = pytest.importorskip("wandb", reason="pip install 'stoic[wandb]'")
    warnings.simplefilter("ignore")
    for name in ("DIR", "CACHE_DIR", "CONFIG_DIR", "DATA_DIR"):
        (tmp_path / name).mkdir()
        monkeypatch.setenv(f"WANDB_{name}", str(tmp_path / name))
    monkeypatch.setenv("WANDB_SILENT", "true")
    yield wandb
    wandb.teardown()


def records(path):
    """The records of an offline run's file, which is a log of LevelDB: blocks of pieces."""
    data, at, piece = path.read_bytes(), 7, b""  # after the file's own header
    while at + 7 <= len(data):
        if (left := 32768 - at % 32768) < 7:  # no piece begins there
            at += left
            continue
        _, size, kind = struct.unpack_from("<IHB", data, at)
        piece += data[at + 7 : at + 7 + size]
        at += 7 + size
        if kind in (1, 4):  # whole, or the last of some
            yield piece
            piece = b""


def logged(path):
    """The settings, the history and the summary of an offline run."""
    from wandb.proto.wandb_internal_pb2 import Record

    def known(items):
        return {
            item.key or ".".join(item.nested_key): json.loads(item.value_json) for item in items
        }

    run, history, summary = None, [], {}
    for record in map(Record.FromString, records(path)):
        if record.HasField("run"):
            run = record.run
        if record.HasField("history"):
            history.append(known(record.history.item))
        if record.HasField("summary"):
            summary |= known(record.summary.update)
    return run, history, summary
