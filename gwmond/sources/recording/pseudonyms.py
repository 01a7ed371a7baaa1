"""Pseudonyms for users, and for their programs and batches, in recordings."""

from __future__ import annotations

import hashlib
import re
import secrets
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gwmond.sources.recording.deltas import Ad

_USERS = ("Owner", "User", "AcctGroupUser", "RemoteOwner", "RemoteUser", "OsUser", "NTDomain")

_NAMES = (("Cmd", "program"), ("JobBatchName", "batch"))


class Pseudonyms:
    """Replaces user names, the same name always by the same pseudonym within one recording."""

    def __init__(self) -> None:
        self._key = secrets.token_bytes(16)
        self._known: dict[str, str] = {}
        self._pattern: re.Pattern[str] | None = None

    def learn(self, found: Iterable[Ad], kind: str) -> None:
        """Take note of every user name in some ads."""
        for ad in found:
            for name in _USERS:
                self._add(ad.get(name, "").strip('"').partition("@")[0])
            if kind == "submitters":
                self._add(ad.get("Name", "").strip('"').partition("@")[0].rpartition(".")[2])

    def _add(self, user: str) -> None:
        if len(user) > 1 and re.fullmatch(r"[\w.+-]+", user) and user not in self._known:
            self._known[user] = f"user-{self._digest(user)}"
            names = "|".join(re.escape(n) for n in sorted(self._known, key=len, reverse=True))
            self._pattern = re.compile(rf"(?<![\w-])({names})(?![\w-])")

    def _digest(self, name: str) -> str:
        return hashlib.blake2b(name.encode(), key=self._key, digest_size=4).hexdigest()

    def clean(self, ad: Ad) -> Ad:
        """Return the ad with every known user name replaced in all of its texts; and ``_NAMES``."""
        pattern = self._pattern
        secret = {
            name: f'"{prefix}-{self._digest(ad[name])}"' for name, prefix in _NAMES if name in ad
        }
        ad = {**ad, **secret} if secret else ad
        if pattern is None:
            return ad
        return {
            name: pattern.sub(lambda m: self._known[m[1]], text) if '"' in text else text
            for name, text in ad.items()
        }
