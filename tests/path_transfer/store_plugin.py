#!/usr/bin/env -S python3 -IS
"""A transfer plugin for tests: store:///DIRECTORY/NAME is a file, and faults are files beside it.

`.down` fails, `.refuse` fails for good, `.die` dies amid a file, `.mute` says nothing, `.slow`
takes its content in seconds.  `.log` has a line for each file that was asked for.
"""

import os
import re
import shutil
import signal
import sys
import time
from pathlib import Path
from urllib.parse import unquote

ABOUT = """MultipleFileSupport = true
PluginVersion = "0.1"
PluginType = "FileTransfer"
ProtocolVersion = 2
SupportedMethods = "store,shop"
"""


def text_of(ad: str, name: str) -> str:
    found = re.search(name + r' = "((?:[^"\\]|\\.)*)"', ad)
    assert found is not None, ad
    return re.sub(r"\\([0-7]{3})", lambda m: chr(int(m[1], 8)), found[1])


def main(arguments: list[str]) -> int:
    if "-classad" in arguments:
        print(ABOUT, end="")
        return 0
    upload = "-upload" in arguments
    asked = os.fsdecode(Path(arguments[arguments.index("-infile") + 1]).read_bytes())
    answer = Path(arguments[arguments.index("-outfile") + 1])
    results, failed = [], 0
    for ad in asked.splitlines():
        url, local = text_of(ad, "Url"), text_of(ad, "LocalFileName")
        path = Path(unquote(url.partition("://")[2], errors="surrogateescape"))
        fault = {file.name: file for file in path.parent.glob(".*")}
        with (path.parent / ".log").open("a", errors="surrogateescape") as log:
            log.write(f"{'to' if upload else 'from'} {path.name!r}\n")
        if ".slow" in fault:
            time.sleep(float(fault[".slow"].read_text()))
        if ".die" in fault:
            path.write_bytes(Path(local).read_bytes()[:3])
            os.kill(os.getpid(), signal.SIGKILL)
        if ".mute" in fault:
            continue
        more = ""
        try:
            if ".down" in fault or ".refuse" in fault:
                raise OSError("it does not \\ answer")
            shutil.copyfile(*((local, path) if upload else (path, local)))
        except OSError:
            failed = 1
            lasting = str(".refuse" not in fault).lower()
            kind = "Contact" if ".down" in fault else "Authorization"
            more = f'TransferError = "it does not \\\\ \\"answer\\""; TransferErrorData = {{ \
                [ ErrorType = "{kind}"; Retryable = {lasting} ] }};'
        done = str(not more).lower()
        results.append(f'[ TransferSuccess = {done}; {more}\n  TransferUrl = "{url}" ]')
    answer.write_text("\n".join(results))
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
