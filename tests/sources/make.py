"""ClassAds for decoders, made from text as daemons would send it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import classad2

from gwmond.config.settings import Attributes
from gwmond.sources import child
from tests.pool.adtext import Ad, Value, ad_text

child.start()  # before the bindings are loaded, as the daemon does

NOW = 1_700_000_000
ATTRIBUTES = Attributes()
LATIN_1 = r'"Universit\351"'  # an octal escape: what a string that is no UTF-8 looks like


def classad(ad: Mapping[str, Value] | str) -> classad2.ClassAd:
    """One ad, of its attributes or of its text."""
    return classad2.ClassAd(ad if isinstance(ad, str) else ad_text(ad))


def classads(*given: Mapping[str, Value]) -> list[classad2.ClassAd]:
    return [classad(ad) for ad in given]


def heard(ad: Ad, at: float = NOW) -> Ad:
    """The ad as its collector hands it out."""
    return ad | {"LastHeardFrom": int(at)}


def attributes(text: str) -> set[str]:
    """The names of the attributes of an ad that is written as text, in lower case."""
    return {name.lower() for name in classad(text).keys()}  # noqa: SIM118


def names(ads: Iterable[classad2.ClassAd]) -> list[str]:
    return [str(ad["Name"]) for ad in ads]
