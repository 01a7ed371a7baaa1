"""Jobs are found by cluster.proc, of one schedd or of all, in both kinds of ledgers."""

from __future__ import annotations

from gwmond.ledger.reading.reader import LedgerReader
from tests.build.pilot_ledger import BASE, write

JOB = f"schedd.example.org#1.0#{BASE}"


def test_jobs_by_their_number(url: str) -> None:
    write(url)
    with LedgerReader.open(url) as ledger:
        for schedd in ("", "schedd.example.org"):
            assert ledger.jobs_numbered("1.0", schedd, 5) == [JOB]
            assert ledger.jobs_numbered("0", schedd, 5) == []
            assert ledger.jobs_numbered("%", schedd, 5) == []
        for other in ("schedd", "schedd_example.org", "%"):
            assert ledger.jobs_numbered("1.0", other, 5) == []
