"""What the ads of a startd, and of its slots, tell of a pilot's origin.

The attributes (GLIDEIN_*, GLIDECLIENT_*) are those of GlideinWMS unless configured.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gwmond.model.facts import EntryKey
from gwmond.model.own_names import client_name
from gwmond.model.pilot_evidence import PilotName
from gwmond.sources.htcondor import ads

if TYPE_CHECKING:
    import classad2

    from gwmond.config.settings import Attributes

UNKNOWN_SITE = "unknown"


def entry_of(ad: classad2.ClassAd, attributes: Attributes) -> EntryKey:
    """Return site and entry of an ad, by the configured attributes."""
    site = ads.label(ad, attributes.site)
    entry = ads.label(ad, attributes.entry)
    return EntryKey(site or entry or UNKNOWN_SITE, entry or site or UNKNOWN_SITE)


def group_of(ad: classad2.ClassAd, attributes: Attributes) -> str:
    """Return ``frontend.group``, as the glideresource ads name a client; empty when neither."""
    frontend = ads.label(ad, attributes.frontend) or ""
    group = ads.label(ad, attributes.group) or ""
    return client_name(frontend, group)


def factory_job(ad: classad2.ClassAd) -> str:
    """Return the pilot as its factory knows it, ``schedd#cluster.proc``; empty if not told."""
    return PilotName(
        schedd=ads.label(ad, ("GLIDEIN_Schedd",)) or "",
        cluster=ads.count(ad, "GLIDEIN_ClusterId"),
        proc=ads.count(ad, "GLIDEIN_ProcId"),
    ).factory_job
