"""What is asked for, by the section of docs/attributes.md that is about it."""

from __future__ import annotations

from pathlib import Path

from gwmond.config.settings import Attributes, DemandOptions
from gwmond.sources.htcondor import demand, order, schedds, stalled, waiting_job
from gwmond.sources.htcondor.access import Query
from gwmond.sources.htcondor.histories import histories
from gwmond.sources.htcondor.pilots import advertised, claims, slots, startds

PAGE = Path(__file__).parents[2] / "docs" / "attributes.md"
ATTRIBUTES, DEMAND = Attributes(), DemandOptions()

#: Section of the page: the queries that it is about.
QUERIES: dict[str, tuple[Query, ...]] = {
    "Slots": (slots.query(ATTRIBUTES),),
    "Claims": (claims.query(),),
    "StartD ads": (startds.query(ATTRIBUTES),),
    "Failed pilots": (advertised.masters_query(ATTRIBUTES),),
    "Schedd ads": (schedds.QUERY,),
    "Accounting groups": (order.QUOTAS_QUERY,),
    "Submitter ads": (schedds.SUBMITTERS,),
    "Idle jobs": (
        demand.query(demand.JobGrouping(ATTRIBUTES, DEMAND)),
        demand.factories_query(demand.JobGrouping(ATTRIBUTES, DEMAND)),
    ),
    "Running jobs": (stalled.query(DEMAND),),
    "One job": (waiting_job.query("1.0", (), ATTRIBUTES, DEMAND),),
    "Epoch history": (histories.query("epochs"),),
    "Transfer records": (histories.query("transfers"),),
    "Schedd history": (histories.query("history"),),
    "Startd history": (histories.query("startd_history"),),
}
