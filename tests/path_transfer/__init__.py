"""The plugin that knows another way, and a storage that does what a test wants."""

from pathlib import Path

PLUGIN = Path(__file__).resolve().parents[2] / "etc" / "gwmond-path-transfer"
STORE = Path(__file__).with_name("store_plugin.py")
