"""Play the scenario, and show what happened: ``python -m tests.proof FILE``.

FILE becomes the truth and all records of the histories, as JSON.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.pool.condor import CondorPool
from tests.proof.observe import Observer
from tests.proof.pilots import POOL_CONFIG
from tests.proof.scenario import Scenario
from tests.proof.truth import Moment, Truth


def _show(truth: Truth, began: float) -> None:
    def shown(moment: Moment) -> str:
        return f"{moment.lo - began:6.2f}..{moment.hi - began:6.2f}"

    for pilot in truth.pilots:
        print(f"{pilot.name:19}{pilot.cores} {shown(pilot.start)} {shown(pilot.end)} {pilot.own}")
        for of in truth.on(pilot.name):
            what = f"  {of.tag:11}{of.number} {of.cores} {of.memory:5}"
            print(f"{what} {shown(of.start)} {shown(of.end)} {of.category} {of.outcome}")


def _main(path: Path) -> None:
    with CondorPool(config=POOL_CONFIG) as pool:
        observer = Observer(pool)
        scenario = Scenario(pool, observer.knows)
        with scenario, observer:
            scenario.play()
        for at, text in scenario.timeline:
            print(f"{at:6.1f} {text}")
        dump = observer.dump()
        truth = scenario.truth()
        _show(truth, scenario.began)
    told = {name: [of._asdict() for of in getattr(truth, name)] for name in truth._fields}
    path.write_text(json.dumps({"truth": told, **dump}, indent=1))


if __name__ == "__main__":
    _main(Path(sys.argv[1]))
