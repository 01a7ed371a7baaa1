"""Safe access to ClassAds: whatever an ad holds, a plain Python value or ``None`` comes out.

The traps are those of the bindings: an undefined attribute is an IntEnum that equals 2, strings
that are not UTF-8 raise UnicodeDecodeError from ``get`` and ``[]``, expressions come unevaluated.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from gwmond.model.facts import AD_LIFETIME_S
from gwmond.model.freshest import freshest

if TYPE_CHECKING:
    import classad2

T = TypeVar("T")

LABEL_CHARACTERS = 100
TEXT_CHARACTERS = 8192
MAX_COUNT = 10**9
_PLAUSIBLE_SKEW_S = 600
_PLAIN = frozenset((bool, int, float, str, type(None)))

# Attributes that are never fetched where a projection can say so, and never stored or logged.
SECRET = frozenset(
    name.lower()
    for name in (
        *("Environment", "Env", "Arguments", "Args", "ClaimId", "ClaimIds", "ChildClaimIds"),
        *("Capability", "PairedClaimId", "TransferKey", "TransferSocket", "SessionInfo"),
        *("GLIDEIN_Token", "GlideinSecurityCredentialToken", "AuthTokenSubject", "AuthTokenId"),
    )
)


# What anybody's expression may cost: some milliseconds, and one match at PCRE's limit (0.1 s).
_MOST_STEPS = 2000
_A_STEP = 1000  # characters
_COSTLY = dict.fromkeys(("regexp", "regexps", "regexpmember", "stringlistregexpmember"), 1000) | (
    # What these do is not to be seen in the text.
    dict.fromkeys(("eval", "evalineachcontext", "countmatches"), _MOST_STEPS)
)
_WORD = re.compile(r"[A-Za-z_]\w*")
_LITERAL = re.compile(r'"(?:[^"\\]|\\.)*"')
_RECORD = re.compile(r"\[\s*[\w']+\s*=(?![=?!])")


def parse(text: str) -> classad2.ClassAd:
    """Return the ClassAd that a text in new syntax says; raises ClassAdException."""
    import classad2  # noqa: PLC0415 (only ever in a child; facts' modules load without it)

    return classad2.ClassAd(text)


def parse_any(text: str) -> classad2.ClassAd | None:
    """Return the ClassAd that a text in new or old syntax says; None: it says none."""
    import classad2  # noqa: PLC0415

    try:
        ad = classad2.parseOne(text)
    except Exception:  # ClassAdException, which has no base that could be named here
        return None
    return ad if len(ad) else None


def expression(text: str) -> classad2.ExprTree | None:
    """Return the expression that a text says; ``None`` if it says none."""
    import classad2  # noqa: PLC0415

    try:
        return classad2.ExprTree(text)
    except Exception:  # ClassAdException, which has no base that could be named here
        return None


def quoted(text: str) -> str:
    """Return a text as a literal of an expression."""
    import classad2  # noqa: PLC0415

    return str(classad2.quote(text))


def named(names: Iterable[str], attribute: str = "Name") -> str:
    """Return the constraint on ads whose Name, or another attribute, is one of these.

    A daemon compares each of its ads with few of the names, as one looks a word up in a book: with
    a list of 300 names a collector of 20,000 ads is busy for 10 s, and answers nobody.
    """
    return _looked_up(attribute, [quoted(name) for name in sorted(set(names), key=_folded)])


def _looked_up(name: str, literals: Sequence[str]) -> str:
    if len(literals) <= 2:
        return " || ".join(f"{name} == {literal}" for literal in literals) or "false"
    half = len(literals) // 2
    before, after = _looked_up(name, literals[:half]), _looked_up(name, literals[half:])
    return f"({name} < {literals[half]} ? {before} : {after})"


def _folded(name: str) -> bytes:
    """Return a key that sorts as ClassAds compare: bytes, whose ASCII letters have no case."""
    return name.encode().lower()


_shared: dict[object, Any] = {}


def shared(value: T) -> T:
    """Return the first value that equals this one, for what very many ads have in common.

    Pickle sends one object once: pilots take a third of the memory so, in the parent, too.
    """
    same: T = _shared.setdefault(value, value)
    return same


def number(ad: classad2.ClassAd, name: str) -> float | None:
    """Return a finite number, evaluated; ``None`` when undefined, an error or not a number."""
    value = _finite(evaluate(ad, name))
    return None if value is None else float(value)


def integer(ad: classad2.ClassAd, name: str) -> int | None:
    """Return a number cut to an integer, or ``None``."""
    value = _finite(evaluate(ad, name))
    return None if value is None else int(value)


def count(ad: classad2.ClassAd, name: str) -> int | None:
    """Return a number that counts something; neither a negative nor an absurd one is a count."""
    value = _finite(evaluate(ad, name))
    return int(value) if value is not None and 0 <= value <= MAX_COUNT else None


def _finite(value: object) -> int | float | None:
    if type(value) is int:  # as most are
        return value
    return value if isinstance(value, (int, float)) and math.isfinite(value) else None


def raw(ad: classad2.ClassAd, name: str) -> str | None:
    """Return a non-empty string as it is, or ``None``: to be parsed, and never to be shown."""
    value = evaluate(ad, name)
    return value if isinstance(value, str) and value else None


def text(ad: classad2.ClassAd, name: str) -> str | None:
    """Return a non-empty string that can be shown, or ``None``."""
    value = raw(ad, name)
    return None if value is None else clean(value)


_PASSWORD = re.compile(r"//[^/@\s]+@")
_TOKEN = re.compile(
    r"([?&;][\w.-]*(?:token|password|passwd|secret|signature|credential|authz|key|sig)=)[^&;\s\"':]+",
    re.IGNORECASE,
)
"""Who asks for a URL, and by what right: before its host, and in its query."""


def clean(value: str, most: int = TEXT_CHARACTERS) -> str:
    """Return a text of anybody's as it may be shown: what all texts of the pool pass.

    What cannot be printed becomes ``?``, such as what terminals obey and what turns the direction
    of writing; space becomes a blank, and a novel is cut.  Passwords of URLs are left out.

    >>> clean("cannot get https://eve:pw@host/x?ver=1&access_token=abc: denied")
    'cannot get https://…@host/x?ver=1&access_token=…: denied'
    """
    if "//" in value:
        value = _PASSWORD.sub("//…@", _TOKEN.sub(r"\1…", value))
    if not value.isprintable():
        value = "".join(c if c.isprintable() else " " if c.isspace() else "?" for c in value)
    return value if len(value) <= most else value[: most - 1] + "…"


def truth(ad: classad2.ClassAd, name: str) -> bool | None:
    """Return a truth value; GlideinWMS writes ``True``, ``"True"`` and ``1`` alike."""
    value = evaluate(ad, name)
    if isinstance(value, str):
        return {"true": True, "false": False}.get(value.strip().lower())
    if isinstance(value, bool) or (isinstance(value, (int, float)) and not _is_enum(value)):
        return bool(value)
    return None


def first_text(ad: classad2.ClassAd, names: Sequence[str]) -> str | None:
    """Return the first of ``names`` that is a non-empty string."""
    for name in names:
        value = text(ad, name)
        if value is not None:
            return value
    return None


def label(ad: classad2.ClassAd, names: Sequence[str]) -> str | None:
    """Return the first of ``names`` that is a non-empty string, as a metric can have it."""
    value = first_text(ad, names)
    return None if value is None else printable(value)


def printable(value: str) -> str:
    """Return a name that a metric can have."""
    return clean(value, LABEL_CHARACTERS)


def first_number(ad: classad2.ClassAd, names: Sequence[str]) -> float | None:
    """Return the first of ``names`` that is a number."""
    return next((value for name in names if (value := number(ad, name)) is not None), None)


def numbers(ad: classad2.ClassAd, name: str) -> list[float] | None:
    """Return a list of finite numbers, or ``None`` when any element is not one."""
    value = evaluate(ad, name)
    if not isinstance(value, list):
        return None
    plain = [
        float(v)
        for v in value
        if isinstance(v, (int, float)) and not _is_enum(v) and math.isfinite(v)
    ]
    return plain if len(plain) == len(value) else None


def evaluate(ad: classad2.ClassAd, name: str) -> object:
    """Evaluate one attribute; ``None`` for absent, undefined, error, undecodable and too costly."""
    try:
        value = ad[name]
        if type(value) in _PLAIN:
            return value
        if type(value).__name__ == "ExprTree":
            value = ad.eval(name) if _steps(ad, value, {}) <= _MOST_STEPS else None
    except KeyError:
        return None
    except Exception:  # undecodable, or a ClassAdException, which has no common base
        return None
    return None if _is_enum(value) else value


def _steps(ad: classad2.ClassAd, tree: object, steps: dict[str, int]) -> int:
    """Return how many steps an expression takes at most, of which no more than too many count.

    Each attribute that it names is evaluated as often as it is named.  The library gives up after
    millions of steps (0.2 s), but one of them may be a regexp that takes 0.1 s.  ``steps``: the
    steps of attributes by their names.
    """
    written = str(tree)
    text = _LITERAL.sub("", written)
    if _RECORD.search(text):
        return _MOST_STEPS + 1
    total = 1 + len(written) // _A_STEP
    for word in _WORD.findall(text):
        name = word.lower()
        if name not in steps:
            steps[name] = _COSTLY.get(name, 1)
            if name in ad:
                inner = ad[name]
                steps[name] = 1 + (len(inner) // _A_STEP if type(inner) is str else 0)
                steps[name] += 0 if type(inner) in _PLAIN else _steps(ad, inner, steps)
        total += steps[name]
        if total > _MOST_STEPS:
            break
    return total


def value(ad: classad2.ClassAd, text: str) -> object:
    """Return what an expression is in an ad; None: undefined, an error, or no expression."""
    try:
        tree = expression(text)
        result = None if tree is None else tree.eval(ad)
    except Exception:  # ClassAdException, which has no common base
        return None
    return None if _is_enum(result) else result


def source_text(ad: classad2.ClassAd, names: Iterable[str]) -> str:
    """Return the ad's text with only ``names``, sorted; what cannot be written is left out."""
    return written(texts(ad, names))


def texts(ad: classad2.ClassAd, names: Iterable[str]) -> dict[str, str]:
    """Return the text of each of these expressions; what cannot be written is left out."""
    by_name = {name: expression_text(ad, name) for name in set(names)}
    return {name: text for name, text in by_name.items() if text is not None}


def expression_text(ad: classad2.ClassAd, name: str) -> str | None:
    """Return the text of an attribute's expression; None: it is absent, or cannot be written."""
    try:
        return str(ad.lookup(name))
    except (KeyError, UnicodeDecodeError, ValueError):
        return None


def referred(ad: classad2.ClassAd, name: str) -> list[str]:
    """Return all that an attribute's expression names in either ad, with their scopes."""
    try:
        tree = ad.lookup(name)
        return [*ad.internalRefs(tree), *ad.externalRefs(tree)]
    except (KeyError, TypeError, UnicodeDecodeError, ValueError):
        return []


def written(expressions: Mapping[str, str]) -> str:
    """Return the text of the ad that has these expressions, by name."""
    names = sorted(expressions, key=str.lower)
    return "[" + "; ".join(f"{name} = {expressions[name]}" for name in names) + "]"


def wants_of(ad: classad2.ClassAd) -> str:
    """Return what identifies a job's Requirements and requests as they are written; or empty."""
    names = "Requirements", "RequestCpus", "RequestMemory", "RequestGPUs"
    return signature(source_text(ad, names))[:12] if names[0] in ad else ""


def signature(ad_text: str) -> str:
    """Return a short name for all that ``ad_text`` says."""
    return hashlib.sha256(ad_text.encode()).hexdigest()[:24]


def _is_enum(value: object) -> bool:
    return type(value).__name__ == "Value"


def fresh(ads: Iterable[classad2.ClassAd], now: float) -> list[classad2.ClassAd]:
    """Drop ads that are older than their lifetime, by the collector's own clock.

    That clock is the newest LastHeardFrom; ours is used when the two plausibly agree.
    """
    aged = [(number(ad, "LastHeardFrom"), ad) for ad in ads]
    newest = max((heard for heard, _ in aged if heard is not None), default=now)
    reference = now if 0 <= now - newest < _PLAUSIBLE_SKEW_S else newest
    return [
        ad
        for heard, ad in aged
        if heard is None or heard + (number(ad, "ClassAdLifetime") or AD_LIFETIME_S) >= reference
    ]


def latest(
    ads: Iterable[classad2.ClassAd], *names: str
) -> dict[tuple[str | None, ...], classad2.ClassAd]:
    """Return the ads that several collectors may have, each once, by the texts of these names."""
    return freshest(
        ads,
        lambda ad: tuple(text(ad, name) for name in names),
        lambda ad: number(ad, "LastHeardFrom") or 0.0,
    )
