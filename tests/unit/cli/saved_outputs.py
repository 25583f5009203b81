"""Saved outputs, as the server answers them."""

from __future__ import annotations

from riseml import wire

SUMMARY: wire.SavedSummary = {
    "place": "s3://runs/paul/toaster/4",
    "state": "saved",
    "saved_at": "2026-08-31T07:23:46Z",
    "files": 1,
    "bytes": 62928,
    "missing": 0,
    "trouble": "",
    "done": 0,
    "total": 0,
    "restored": {"attempt": 2, "files": 3, "bytes": 70, "kept": 0},
}
SAVED: wire.SavedView = {
    **SUMMARY,
    "id": "4",
    "manifest": [
        {
            "path": "model.npy",
            "size": 62928,
            "sha256": "7aebd29023b9" + "0" * 52,
            "changed": "2026-08-31T07:23:46Z",
            "url": "s3://runs/paul/toaster/4/model.npy",
        }
    ],
    "missing_paths": ["late\x1b[2J"],
    "left_out": [{"path": "a\nb", "why": "no object can have its name"}],
}
