"""The tests of a validation in the long result of a pilot: which are kept, and what is no test."""

from __future__ import annotations

from gwmond.model.pilots.pilot_facts import ValidationTest
from gwmond.sources.gwms import result_xml

HOUR = "2022-02-28T22:{:02}:{:02}-08:00"
BASE_US = 1_646_114_400_000_000  # 22:00:00 there


def result(name: str, start: int, end: int, status: str = "OK", more: str = "") -> str:
    times = [HOUR.format(*divmod(at, 60)) for at in (start, end)]
    return (
        f'<OSGTestResult id="{name}" version="4.3.1"><operatingenvironment>'
        '<env name="cwd">/x</env></operatingenvironment>'
        f"<test><cmd>{name}</cmd><tStart>{times[0]}</tStart><tEnd>{times[1]}</tEnd></test>"
        f"<result><status>{status}</status>{more}</result></OSGTestResult>"
    )


def whole(*tests: str) -> bytes:
    inside = f"<subtestlist><OSGTestResults>{''.join(tests)}</OSGTestResults></subtestlist>"
    own = result("glidein_startup.sh", 0, 900, "ERROR").partition("<operating")
    return f"{own[0]}{inside}{own[1]}{own[2]}".encode()


def known(name: str, start: int, end: int, failure: str = "") -> ValidationTest:
    at = BASE_US + start * 1_000_000, BASE_US + end * 1_000_000
    return ValidationTest(name, *at, failure)


def test_those_that_failed_and_the_longest_are_kept_in_their_order() -> None:
    failure = '<metric name="failure" ts="2022-02-28T22:00:09-08:00" uri="local">Network</metric>'
    found = result_xml.tests_of(
        whole(
            result("main/quick.sh", 0, 0),
            result("main/setup.sh", 0, 4, more=failure),  # it passed: what it says is no failure
            result("client/check.sh", 4, 4, "ERROR", failure),
            result("entry/odd.sh", 5, 6, "ERROR"),
        )
    )
    assert found == (
        (
            known("main/setup.sh", 0, 4),
            known("client/check.sh", 4, 4, "Network"),
            known("entry/odd.sh", 5, 6, "Unknown"),
        ),
        1,
    )


def test_what_is_kept_is_bounded() -> None:
    tests = [result(f"t{n:02}.sh", n, n + 1 + n % 7) for n in range(40)]
    kept, more = result_xml.tests_of(whole(*tests, result("bad.sh", 50, 50, "ERROR")))
    assert (len(kept), more) == (result_xml.MOST_TESTS, 25)
    assert kept[-1] == known("bad.sh", 50, 50, "Unknown")
    lengths = sorted((test.end_us - test.start_us) // 1_000_000 for test in kept)
    assert lengths[1:] == sorted(sorted((1 + n % 7 for n in range(40)), reverse=True)[:15])


def test_what_is_no_test_is_left_out() -> None:
    """A result that is cut off, times that are none, and markup that a test pasted."""
    backwards, cut = result("back.sh", 9, 3), result("cut.sh", 1, 9).partition("<tEnd>")[0]
    pasted = result("pasted.sh", 1, 3, more="<b>&x; <metric></b>")
    assert result_xml.tests_of(b"") == ((), 0)
    assert result_xml.tests_of(result("glidein_startup.sh", 0, 9).encode()) == ((), 0)
    found = result_xml.tests_of(whole(backwards, pasted, cut))
    assert found == ((known("pasted.sh", 1, 3),), 0)
    undated = result("undated.sh", 1, 9).replace("2022-02-28T22:00:01-08:00", "now")
    assert result_xml.tests_of(whole(undated)) == ((), 0)
