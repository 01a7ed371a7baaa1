"""gwmond that polls sooner than configured: ``python tests/daemon/sooner.py SECONDS run ...``.

A poll may then take long on a busy machine, as its interval is long, and no test waits for that.
The ledger is pruned as many polls apart as with polls of a minute.
"""

from __future__ import annotations

import sys
from typing import Any


def main(seconds: float, arguments: list[str]) -> int:
    """Run gwmond; the time from poll to poll is ``seconds``."""
    from apscheduler.schedulers import background  # noqa: PLC0415 (for the daemon alone)

    class Sooner(background.BackgroundScheduler):  # type: ignore[misc]
        def add_job(self, *job: Any, **options: Any) -> Any:
            return super().add_job(*job, **{**options, "seconds": seconds})

        def reschedule_job(self, *job: Any, **options: Any) -> Any:
            return super().reschedule_job(*job, **{**options, "seconds": seconds})

    background.BackgroundScheduler = Sooner
    from gwmond import cli  # noqa: PLC0415 (children of the fork server do without)
    from gwmond.service.accounting import ledger_keeper  # noqa: PLC0415

    ledger_keeper._PRUNE_EVERY_S *= seconds / 60
    return cli.main(arguments)


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), sys.argv[2:]))
