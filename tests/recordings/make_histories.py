"""Makes tests/recordings/histories/*/*.json, the records by which decoders of histories are tested.

    python -m tests.recordings.make_histories 23 25 25-23

A real pool of each version of HTCondor plays tests/sources/history_scenario.py, and so does one of
the newer version with pilots of the older; what the sources ask for of the histories is written as
ClassAd text, oldest record first.  As root, with HTCondor at hand (tests/pool/setup.sh); it takes
some minutes.  Clocks are the pool's, so files change as a whole.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
import time
from pathlib import Path

from gwmond.config.settings import Attributes
from gwmond.sources import child
from gwmond.sources.htcondor.access import LiveAccess
from gwmond.sources.htcondor.pilots import claims, slots, startds
from tests.pool.condor import CondorPool
from tests.pool.pilot import Pilot
from tests.sources import history_scenario as scenario

HISTORIES = Path(__file__).with_name("histories")
#: Ads of a collector, while jobs run.
ADS = {
    "claims": claims.query(),
    "slots": slots.query(Attributes()),
    "startds": startds.query(Attributes()),
}
#: Directory: the versions of a pool and of its pilots.
POOLS = {"23": ("23", "23"), "25": ("25", "25"), "25-23": ("25", "23")}


def main() -> None:
    for name in sys.argv[1:]:
        # In a process of its own: the bindings read their configuration once.
        maker = multiprocessing.get_context("spawn").Process(
            target=_make, args=(HISTORIES / name, *POOLS[name])
        )
        maker.start()
        maker.join()


def _make(directory: Path, htcondor: str, pilots_of: str) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    with CondorPool(htcondor=htcondor, config=scenario.CONFIG) as pool:
        os.environ.update(pool.client_env())
        child.start()
        found: dict[str, list[dict[str, str]]] = {}

        def during(pilots: dict[str, Pilot]) -> None:
            time.sleep(6)  # until the slots' ads have been sent
            for kind, query in ADS.items():
                asked = child.run(
                    scenario.recorded_ads, LiveAccess(), pool.collector, query, deadline_s=60
                )
                found[kind] = asked[0]

        played = scenario.play(pool, during, pilots_of)
        time.sleep(2)  # until the last startd's record is written
        schedd = scenario.daemon(pool, "Schedd", pool.schedds[0])
        for kind in ("epochs", "history"):
            asked = child.run(scenario.recorded, LiveAccess(), schedd, kind, deadline_s=60)
            found[kind] = asked[0]
        found["startd_history"] = []
        for path in filter(Path.exists, scenario.startd_files(played).values()):
            found["startd_history"] += child.run(scenario.recorded_file, path, deadline_s=60)[0]
    for kind, ads in found.items():
        lines = ",\n".join(json.dumps(ad) for ad in ads)
        (directory / f"{kind}.json").write_text(f"[\n{lines}\n]\n")
        print(f"{directory.name} {kind}: {len(ads)} records")


if __name__ == "__main__":
    main()
