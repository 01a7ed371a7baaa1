"""Whatever is in a file, its parser returns: no exception, bounded memory, bounded time."""

from __future__ import annotations

import gzip
import random
import resource
import time
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gwmond.model.problem_names import ProblemName
from gwmond.sources.gwms import (
    blobs,
    central_log,
    completed_jobs,
    condor_events,
    pilot_err,
    pilot_out,
    pilot_output,
    result_xml,
    starter_log,
)
from gwmond.sources.gwms.texts import Zone
from gwmond.sources.htcondor.histories import startd_history
from tests.build.gwms import figures, generate, simulated
from tests.examples import examples

ZONE = Zone(((simulated.BASE, 3600),))
CHANGED = Zone(((simulated.BASE, 7200), (simulated.BASE + 10**6, 3600), (2 * 10**9, -3600)))
PILOTS = list(simulated.pilots(3, 60))
OUTS = [generate.out(pilot) for pilot in PILOTS if pilot.returned]
ERRS = [generate.err(pilot) for pilot in PILOTS if pilot.returned]
STARTERS = ["".join(generate.starter(p, job) for job in p.jobs).encode() for p in PILOTS if p.jobs]
HISTORIES = [generate.history(pilot).encode() for pilot in PILOTS if pilot.jobs]
XMLS = [generate.long_xml(pilot).encode() for pilot in PILOTS]


def unpacked(raw: bytes, zone: Zone = ZONE) -> pilot_err.Logs:
    return pilot_err.unpack(pilot_err.parse(raw), zone, simulated.BASE, lambda _: False)


PARSERS: dict[str, tuple[Callable[[bytes], object], list[bytes]]] = {
    "out": (pilot_out.parse, OUTS),
    "err": (unpacked, ERRS),
    "both": (lambda raw: pilot_output.parse("p", raw, raw), [*OUTS, *ERRS]),
    "starter": (
        lambda raw: starter_log.parse(raw, ZONE, simulated.BASE),
        [*STARTERS, figures.FIGURE_5.encode()],
    ),
    "err of a clock that is set": (lambda raw: unpacked(raw, CHANGED), ERRS),
    "starter of a clock that is set": (
        lambda raw: starter_log.parse(raw, CHANGED, simulated.BASE),
        STARTERS,
    ),
    "history": (startd_history.parse, HISTORIES),
    "xml": (result_xml.parse, [*XMLS, figures.FIGURE_8.encode()]),
    "completed": (
        lambda raw: completed_jobs.parse("p", raw),
        [
            "".join(generate.completed(pilot) for pilot in PILOTS).encode(),
            figures.FIGURE_9.encode(),
        ],
    ),
    "events": (
        lambda raw: condor_events.parse("p", raw, written_s=simulated.BASE),
        ["".join(generate.events(pilot) for pilot in PILOTS).encode()],
    ),
    "central": (lambda raw: central_log.parse("p", raw), [figures.FIGURE_7.encode()]),
}
every = pytest.mark.parametrize("kind", PARSERS)


TOKENS = st.sampled_from(
    [
        *(b"=== ", b"===", b"Condor starting", b" (1795000000)", b" (99999999999999)", b"\n", b" "),
        *(b"=== Glidein ending x (1795000000) with code 99 after 1 ===\n", b"begin-base64 644 -\n"),
        *(b"StartdHistoryLog\n======== gzip | uuencode =============\n", b"====\n", b"\0", b"-1"),
        *(b"StarterLog\n======== gzip | uuencode =============\n", b"H4sIAAAA", b"\n*** \n"),
        *(b"<OSGTestResult>", b"</OSGTestResult>", b"<metric name='failure'>", b"<result>", b"]]>"),
        *(b"01/01/26 00:00:00 (pid:1) ", b"02/30/26 99:99:99 ", b"Create_Process succeeded, "),
        *(b"Process exited, pid=1, status=-1", b"STARTING UP", b"EXITING WITH STATUS 9", b"12/31 "),
        *(b"012 (1.0.0) 02/29 00:00:00 Job was held.\n...\n", b"005 (1.0.0) 2026-13-01 00:00:00 "),
        *(b"<149>1 2022-01-28T00:23:36Z h p 1 - ", b'[a="b\\"]', b"<job ", b'id="1.0"', b"</job>"),
        *(b"=== XML description of glidein activity ===\n", b"=== End XML description of glidein"),
        *(b'GlobalJobId = "a#1.0#1"\n', b"CompletionDate = 1e400\n", b"NumShadowStarts = 1\n"),
        *(
            b"=== Encoded XML description of glidein activity ===\n",
            b"Total jobs 1 utilization 2\n",
        ),
        b"Terminated job 1.0 from x status 0 duration 999999999999",
    ]
)


@st.composite
def damaged(draw: st.DrawFn, samples: list[bytes]) -> bytes:
    """A file that begins and ends anywhere, with a few bytes that are others, missing, or twice."""
    raw = bytearray(draw(st.sampled_from(samples)))
    begin, end = draw(st.integers(0, len(raw))), draw(st.integers(0, len(raw)))
    for _ in range(draw(st.integers(0, 5))):
        at = draw(st.integers(0, max(0, len(raw) - 1)))
        length = draw(st.integers(0, 40))
        raw[at : at + length] = draw(st.binary(max_size=40)) or raw[at : at + 2 * length]
    return bytes(draw(st.sampled_from((raw, raw[:end], raw[begin:]))))


@every
@settings(max_examples=examples(240), suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_whatever_a_file_has(kind: str, data: st.DataObject) -> None:
    """It is damaged, it has words of the formats in any order, or it is anything at all."""
    parse, samples = PARSERS[kind]
    words = st.lists(TOKENS, max_size=60).map(b"".join)
    parse(data.draw(st.one_of(damaged(samples), damaged(samples), words, st.binary(max_size=3000))))


@every
def test_one_line_of_20_mb(kind: str) -> None:
    """A line without an end takes neither long nor much more memory than it has itself."""
    parse = PARSERS[kind][0]
    for piece in (b"x", b"= '", b'a="', b"(", b"[", b"1/", b"<job ", b"\\", b"9"):
        begun = time.monotonic()
        parse(b"<149>1 2022-01-28T00:23:36Z h p 1 - [" + piece * (20_000_000 // len(piece) // 10))
        assert time.monotonic() - begun < 20, piece


def test_a_cut_history_gives_its_whole_records() -> None:
    """Every record whose banner is there comes, and no other."""
    whole = HISTORIES[0] * 3
    records, wrong = startd_history.parse(whole)
    assert wrong == []
    ends = [at for at in range(len(whole)) if whole.startswith(b"\n", at) and _in_banner(whole, at)]
    assert len(ends) == len(records)
    for number, end in enumerate(ends):
        assert len(startd_history.parse(whole[: end + 1])[0]) == number + 1
        assert len(startd_history.parse(whole[:end])[0]) == number


def _in_banner(raw: bytes, newline: int) -> bool:
    return raw[raw.rfind(b"\n", 0, newline) + 1 :].startswith(b"*** ")


# -- compressed logs


def test_a_gzip_bomb_is_bounded() -> None:
    """Most of a gigabyte that takes less than one megabyte gives the limit, and says so."""
    bomb = gzip.compress(bytes(1 << 26), 9) * 12
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    data, wrong, _ = blobs.gunzip(bomb, 8 << 20)
    assert (len(data), wrong) == (8 << 20, "too_large")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 60_000


def test_the_logs_of_one_pilot_are_bounded_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many bombs are no more than one."""
    monkeypatch.setattr(pilot_err, "LOGS_BYTES", 3 << 20)
    monkeypatch.setattr(blobs, "BLOB_BYTES", 1 << 20)
    raw = b"".join(generate.log(f"StarterLog.slot1_{n}", bytes(4 << 20)) for n in range(20))
    logs = unpacked(raw)
    assert len(logs.wrong) == 4
    assert {word for _, word in logs.wrong} == {"too_large"}


@pytest.mark.parametrize(
    "damage",
    [
        lambda log: log[:250] + b"!" + log[251:],
        lambda log: log[: len(log) // 2] + b"!" + log[len(log) // 2 :],
        lambda log: log.replace(b"\n====", b"AAAA\n====", 1),
    ],
)
@pytest.mark.parametrize("name", ["StarterLog.slot1_{}", "StartdHistoryLog{}"])
def test_damaged_logs_are_bounded_together(
    monkeypatch: pytest.MonkeyPatch, damage: Callable[[bytes], bytes], name: str
) -> None:
    """What is unpacked counts, also where damage makes nothing of it usable."""
    monkeypatch.setattr(pilot_err, "LOGS_BYTES", 3 << 20)
    monkeypatch.setattr(blobs, "BLOB_BYTES", 1 << 20)
    sizes: list[int] = []

    def gunzip(packed: bytes, limit: int) -> blobs.Unpacked:
        result = original(packed, limit)
        sizes.append(result.size)
        return result

    original = blobs.gunzip
    monkeypatch.setattr(blobs, "gunzip", gunzip)
    noise = random.Random(1).randbytes(1 << 12) * (1 << 10)
    names = [name.format(n if "Starter" in name else "") for n in range(20)]
    raw = b"".join(damage(generate.log(name, noise)) for name in names)
    unpacked(raw)
    assert sum(sizes) <= 5 << 20


def test_several_files_in_one_blob() -> None:
    """What gzip packed one after the other comes out as one text."""
    assert blobs.gunzip(gzip.compress(b"a") + gzip.compress(b"b")) == (b"ab", None, 2)


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        (lambda raw: raw, None),
        (lambda raw: raw[: len(raw) // 2], "truncated"),
        (lambda raw: raw.replace(b"H4sI", b"H4sJ"), "bad_gzip"),
        (lambda raw: raw[:150] + b"!" + raw[151:], "bad_base64"),
        (lambda raw: raw[:150] + (b"A" if raw[150:151] != b"A" else b"B") + raw[151:], "bad_gzip"),
        (lambda raw: raw[: raw.index(b"H4sI")] + b"====\n", "empty_log"),
    ],
)
def test_damaged_blobs(change: Callable[[bytes], bytes], wrong: str | None) -> None:
    """What was cut off is used as far as it goes; what is damaged is not used at all."""
    text = b"".join(b"line %d of a log\n" % n for n in range(500))
    raw = change(generate.log("StarterLog", text))
    (blob,) = blobs.find(raw)
    found = blobs.unpack(raw, blob)
    assert found.wrong == wrong
    assert text.startswith(found.data)
    assert bool(found.data) is (wrong in {None, "truncated"})


# -- XML


BOMB = (
    b'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "aaaaaaaaaa">'
    b'<!ENTITY b "&a;&a;&a;&a;&a;&a;">]><OSGTestResult id="x"><test>&b;</test></OSGTestResult>'
)


@pytest.mark.parametrize(
    "raw",
    [
        BOMB,
        b'<!DOCTYPE x SYSTEM "file:///etc/passwd"><OSGTestResult/>',
        b'<!DOCTYPE x [<!ENTITY e SYSTEM "http://localhost/">]><OSGTestResult>&e;</OSGTestResult>',
        BOMB + b"<not well-formed",
        b"x <!ENTITY a 'b'> <status>OK</status>",
        b'<?xml version="1.0" encoding="UTF-7"?><!DOCTYPE x><OSGTestResult/>',
    ],
)
def test_declarations_are_refused(raw: bytes) -> None:
    """No entity is declared, and nothing is expanded or fetched."""
    assert result_xml.parse(raw) == result_xml.ParsedResult(None, ProblemName.XML_REFUSED)


@pytest.mark.parametrize(
    "raw",
    [
        b"<a>" * 100_000,
        b"<a>" * 100_000 + b"</a>" * 100_000,
        BOMB.decode().replace("?>", ' encoding="UTF-16"?>').encode("utf-16"),
    ],
)
def test_depth_and_encodings_do_no_harm(raw: bytes) -> None:
    assert result_xml.parse(raw) == result_xml.ParsedResult(None, ProblemName.XML_MALFORMED)


def test_an_entity_that_nobody_declared() -> None:
    """The text is not well-formed, but what stands beside is read; the word stays as it is."""
    parsed = result_xml.parse(
        b"<OSGTestResult><result><status>OK</status>"
        b'<metric name="TestID">&x;</metric></result></OSGTestResult>'
    )
    assert parsed.wrong == "xml_malformed"
    assert parsed.result is not None
    assert (parsed.result.ok, parsed.result.test) == (True, "&x;")


def test_what_a_shell_pastes_into_xml() -> None:
    """A test that prints angle brackets and ampersands costs the form, not the result."""
    pilot = next(pilot for pilot in PILOTS if pilot.kind == "failed")
    text = generate.xml(pilot).replace(
        "</OSGTestResult>", "<detail>a < b && c</detail></OSGTestResult>"
    )
    parsed = result_xml.parse(text.encode())
    assert parsed.wrong == "xml_malformed"
    assert parsed.result == result_xml.parse(generate.xml(pilot).encode()).result
