"""A pool whose collector answers only who has a token, or is of the pool."""

from __future__ import annotations

import secrets

from tests.pool.condor import CondorPool

TOKEN_POOL = """
COLLECTOR.SEC_READ_AUTHENTICATION = REQUIRED
COLLECTOR.SEC_READ_AUTHENTICATION_METHODS = CLAIMTOBE, IDTOKENS
SEC_PASSWORD_DIRECTORY = $(LOCAL_DIR)/keys
SEC_TOKEN_POOL_SIGNING_KEY_FILE = $(LOCAL_DIR)/keys/POOL
TRUST_DOMAIN = pool.test
"""


def make_key(pool: CondorPool) -> None:
    """Make the key with which the pool signs tokens."""
    key = pool.local / "keys" / "POOL"
    key.parent.mkdir(mode=0o700, exist_ok=True)
    key.write_bytes(secrets.token_bytes(64))
    key.chmod(0o600)
