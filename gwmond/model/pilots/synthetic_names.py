"""Names of pilots, and of the clients for whom they run.

A pilot without a known startd's name is called ``cluster.proc@user:instance.entry``.  Without a
schedd, a factory's user (directory ``user_...``) is part of the name: schedds of several users may
count alike.  Names of earlier versions have none, and may be of any user.
"""

from __future__ import annotations

from gwmond.model.digits import is_number


def synthetic_name(number: str, user: str, instance: str, entry: str) -> str:
    """Return a pilot's own name; ``number`` is ``cluster.proc``.

    >>> synthetic_name("7.0", "fe", "i", "E"), synthetic_name("7.0", "", "i", "E")
    ('7.0@fe:i.E', '7.0@i.E')
    """
    return f"{number}@{user}:{instance}.{entry}" if user else f"{number}@{instance}.{entry}"


def is_synthetic(name: str) -> bool:
    """Return whether a pilot has such a name, and not a startd's.

    >>> is_synthetic("7.0@fe:i.E"), is_synthetic("glidein_1@n"), is_synthetic("")
    (True, False, False)
    """
    return is_number(name[:1])


def same_user(name: str, user: str) -> bool:
    """Return whether a pilot of that name may be a user's; any may be of one that is not known.

    >>> same_user("7.0@fe:i.E", "fe2"), same_user("7.0@i.E", "fe2"), same_user("glidein_1@n", "f")
    (False, True, True)
    """
    owner, found, _ = name.partition("@")[2].partition(":")
    return not (user and found and is_synthetic(name)) or owner == user


def client_name(frontend: str, group: str) -> str:
    """Return for whom a pilot runs, ``frontend.group``; empty if neither is known.

    Frontends differ in whether GLIDECLIENT_Name has the group in it already.

    >>> client_name("fe.main", "main"), client_name("UCSD-v5.3", "main"), client_name("fe", "")
    ('fe.main', 'UCSD-v5.3.main', 'fe')
    """
    if group and frontend.endswith(f".{group}"):
        return frontend
    return ".".join(part for part in (frontend, group) if part)
