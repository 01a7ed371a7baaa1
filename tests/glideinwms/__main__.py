"""Plays the story, and makes of it the recorded real pool of the fast tests.

    python -m tests.glideinwms DIRECTORY [--only-files]

DIRECTORY gets all that was said; ``tests/recordings/glideinwms`` the recording (``real.zip``),
the attributes that ads had (``attributes.json``), and what was written by pilots and the factory
(``files.zip``).
``--only-files``: DIRECTORY has it all already. As root, in ten minutes.
"""

from __future__ import annotations

import argparse
import base64
import gzip
import json
import re
import shutil
import signal
import zipfile
from pathlib import Path

from tests.glideinwms.story import tell

RECORDED = Path(__file__).parents[1] / "recordings" / "glideinwms"
_READ = ("completed_jobs_*.log", "condor_activity_*.log", "job.*.out", "job.*.err")
_PACKED = re.compile(rb"(begin-base64[^\n]*\n)(.*?)(?=\n====)", re.DOTALL)
_BLOB = re.compile(rb"StartdHistoryLog\n=+ gzip[^\n]*\nbegin-base64[^\n]*\n(.*?)\n====", re.DOTALL)
_USERS = re.compile(rb"\b(?:alice|bob)\b")
#: Pilots of an entry whose output is kept, and how many bytes of a .err at most.
_PILOTS, _BYTES = 2, 100_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--only-files", action="store_true")
    options = parser.parse_args()
    directory: Path = options.directory
    if not options.only_files:
        directory.mkdir()
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's "&" has it ignored
        tell(directory, record=True)
    RECORDED.mkdir(exist_ok=True)
    shutil.copyfile(directory / "real.zip", RECORDED / "real.zip")
    write_names(directory)
    write_files(directory / "files")


def write_names(directory: Path) -> None:
    """Add which attributes there were; those of startds' histories are in pilots' outputs."""
    path = RECORDED / "attributes.json"
    names: dict[str, set[str]] = {}
    for seen in (path, directory / "names.json"):
        for kind, of in json.loads(seen.read_text()).items():
            names.setdefault(kind, set()).update(of)
    records = set()
    for output in (directory / "files").rglob("job.*.err"):
        for blob in _BLOB.findall(output.read_bytes()):
            text = gzip.decompress(base64.b64decode(blob)).decode(errors="replace")
            records |= set(re.findall(r"^(\w+) = ", text, re.MULTILINE))
    names.setdefault("startd_history", set()).update(records)
    lines = (f"{json.dumps(kind)}: {json.dumps(sorted(of))}" for kind, of in sorted(names.items()))
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def write_files(logs: Path) -> None:
    """Write the files that gwmond reads, in the factory's tree; of some pilots of each entry."""
    with zipfile.ZipFile(RECORDED / "files.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        outputs: dict[Path, set[str]] = {}
        for path in sorted(path for pattern in _READ for path in logs.rglob(pattern)):
            if path.is_symlink() or path.stat().st_size > _BYTES:
                continue
            if path.name.startswith("job."):
                kept = outputs.setdefault(path.parent, set())
                if len(kept) == _PILOTS and path.stem not in kept:
                    continue
                kept.add(path.stem)
            name = zipfile.ZipInfo.from_file(path, path.relative_to(logs))
            archive.writestr(name, nameless(path.read_bytes()), zipfile.ZIP_DEFLATED)


def nameless(text: bytes) -> bytes:
    """Return a file without the names of its users, which are in the logs that it has packed."""

    def cleaned(found: re.Match[bytes]) -> bytes:
        log = gzip.decompress(base64.b64decode(found[2]))
        other = _USERS.sub(b"user", log)
        again = base64.encodebytes(gzip.compress(other, mtime=0)).strip()
        return found[0] if other == log else found[1] + again

    return _PACKED.sub(cleaned, _USERS.sub(b"user", text))


def unpacked(text: bytes) -> list[bytes]:
    """Return the logs that a pilot's .err has packed."""
    return [gzip.decompress(base64.b64decode(found[2])) for found in _PACKED.finditer(text)]


if __name__ == "__main__":
    main()
