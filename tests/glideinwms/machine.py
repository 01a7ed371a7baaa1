"""A machine of its own for a GlideinWMS: processes, files, network and name, with nothing left.

Namespaces as a test pool's (tests/pool/sandbox.py), and a network of its own: loopback alone, in
which all ports are free, and gwmond is run (``network``). The Debian is read-only; what GlideinWMS
and HTCondor write is below the working directory, and known by the same path as on a factory.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tests.glideinwms import source
from tests.pool.sandbox import Sandbox, SetupError

#: Directories that are written to.
WRITTEN = (
    "gwms",
    "usr/lib/python3/dist-packages/glideinwms",
    *("etc/gwms-factory", "var/lib/gwms-factory", "var/log/gwms-factory"),
    *("etc/gwms-frontend", "var/lib/gwms-frontend", "var/log/gwms-frontend"),
)
#: Programs of HTCondor that cost seconds at each start of a pilot, and tell nothing here.
IDLE = "condor_mips condor_kflops box_plugin.py gdrive_plugin.py onedrive_plugin.py"
NAMES = "127.0.0.1 node.gwms.test localhost wms.gwms.test user.gwms.test site.gwms.test"
_PREPARE = f"""
hostname node.gwms.test
ip link set lo up
echo {NAMES} >"$work/hosts"
mount --bind "$work/hosts" "$root/etc/hosts"
for directory in {" ".join(WRITTEN)}; do
    mkdir -p "$work/files/$directory"
    mount --bind "$work/files/$directory" "$root/$directory"
done
for program in {IDLE}; do
    mount --bind "$root/usr/bin/true" "$root/usr/libexec/condor/$program"
done
"""


class Machine(Sandbox):
    """One machine; commands are run as one of its users, for one of its three pools."""

    def __init__(self) -> None:
        root = source.chroot()
        if not (root / "usr/sbin/condor_master").exists():
            raise SetupError(f"{root} is not there (tests/glideinwms/setup.sh)")
        super().__init__(root, alone=True, prepare=_PREPARE)

    def file(self, path: str) -> Path:
        """Where a file of the machine is for those outside: ``/gwms/...`` and the like."""
        return self.work / "files" / path.lstrip("/")

    def as_user(self, user: str, pool: str, command: Sequence[str], home: str) -> list[str]:
        """The command as a user, with the configuration of a pool."""
        variables = {
            "HOME": home,
            "USER": user,
            "LOGNAME": user,
            "LANG": "C.UTF-8",
            "CONDOR_CONFIG": f"/gwms/etc/{pool}.conf",
            "X509_CERT_DIR": "/etc/ssl/certs",
            "PYTHONPATH": "/usr/lib/python3/dist-packages",
        }
        env = ["env", *(f"{name}={value}" for name, value in variables.items())]
        return ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups", *env, *command]
