"""The daemon and the importer: one poll after another, what they keep, and their problems."""
