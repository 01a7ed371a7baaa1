"""Ids of spans: the contract, as others compute it."""

from __future__ import annotations

import hashlib
from unittest import mock

from gwmond.traces import ids
from gwmond.traces.ids import SpanName, span_id, trace_id

JOB = "ap1.example.org#1234.0#1700000000"


def test_ids_are_parts_of_one_digest() -> None:
    digest = hashlib.sha256(b"gwmond/1\0run\0" + JOB.encode() + b"\0003").digest()
    assert trace_id(SpanName.RUN, JOB, "3") == digest[:16]
    assert span_id(SpanName.RUN, JOB, "3") == digest[16:24]


def test_vectors() -> None:
    """docs/traces.md gives these; a change is a new version of the contract."""
    assert trace_id(SpanName.JOB, JOB).hex() == "97b75ce2d7799e544aff64d5ed2a46de"
    assert span_id(SpanName.JOB, JOB).hex() == "5537c067c23f9625"
    assert span_id(SpanName.RUN, JOB, "1700000100").hex() == "ecd70de93ebb1276"


def test_no_id_is_zero() -> None:
    with mock.patch.object(ids, "sha256") as zeros:
        zeros.return_value.digest.return_value = bytes(32)
        assert trace_id(SpanName.JOB, JOB) == bytes(15) + b"\1"
        assert span_id(SpanName.JOB, JOB) == bytes(7) + b"\1"
