"""Makes tests/recordings/histories/*.json, the records by which decoders of histories are tested.

    python -m tests.recordings.make_histories

A real pool plays tests/sources/history_scenario.py; what the sources ask for of its histories is
written as ClassAd text, oldest record first.  As root, with HTCondor at hand (tests/pool/setup.sh);
it takes a minute.  Clocks are the pool's, so files change as a whole.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

from gwmond.sources import child
from gwmond.sources.access import LiveAccess
from tests.pool.condor import CondorPool
from tests.pool.pilot import Pilot
from tests.sources import history_scenario as scenario

HISTORIES = Path(__file__).with_name("histories")


def main() -> None:
    HISTORIES.mkdir(exist_ok=True)
    with CondorPool(config=scenario.CONFIG) as pool:
        os.environ.update(pool.client_env())
        child.start()
        found: dict[str, list[dict[str, str]]] = {}

        def during(pilots: dict[str, Pilot]) -> None:
            time.sleep(6)  # until the slots' ads have been sent
            asked = child.run(scenario.recorded_claims, LiveAccess(), pool.collector, deadline_s=60)
            found["claims"] = asked[0]

        played = scenario.play(pool, during)
        time.sleep(2)  # until the last startd's record is written
        schedd = scenario.daemon(pool, "Schedd", pool.schedds[0])
        for kind in ("epochs", "history"):
            asked = child.run(scenario.recorded, LiveAccess(), schedd, kind, deadline_s=60)
            found[kind] = asked[0]
        found["startd_history"] = []
        for path in scenario.startd_files(played).values():
            found["startd_history"] += child.run(scenario.recorded_file, path, deadline_s=60)[0]
    for kind, ads in found.items():
        lines = ",\n".join(json.dumps(ad) for ad in ads)
        (HISTORIES / f"{kind}.json").write_text(f"[\n{lines}\n]\n")
        print(f"{kind}: {len(ads)} records")


if __name__ == "__main__":
    main()
