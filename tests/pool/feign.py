"""Feigned ads, to be put into a real collector (CondorPool.advertise) or used as they are."""

from tests.pool.adtext import Ad, Expr, Value, ad_text, literal
from tests.pool.feign_gwms import (
    glideclient,
    glidefactory,
    glidefactoryclient,
    glidefrontendmonitor,
    glideresource,
)
from tests.pool.feign_slots import (
    dynamic_slot,
    failed_master,
    failed_validation,
    glidein,
    partitionable_slot,
    startd_ad,
    static_slot,
)

#: How each type of ad is sent to the collector.
COMMANDS = {
    "Machine": "UPDATE_STARTD_AD",
    "StartD": "UPDATE_STARTD_AD",
    "glideresource": "UPDATE_AD_GENERIC",
    "glidefrontendmonitor": "UPDATE_AD_GENERIC",
    "glidefactory": "UPDATE_AD_GENERIC",
    "glidefactoryclient": "UPDATE_LICENSE_AD",
    "glideclient": "UPDATE_MASTER_AD",
    "DaemonMaster": "UPDATE_MASTER_AD",
}

__all__ = [
    "COMMANDS",
    "Ad",
    "Expr",
    "Value",
    "ad_text",
    "dynamic_slot",
    "failed_master",
    "failed_validation",
    "glideclient",
    "glidefactory",
    "glidefactoryclient",
    "glidefrontendmonitor",
    "glidein",
    "glideresource",
    "literal",
    "partitionable_slot",
    "startd_ad",
    "static_slot",
]
