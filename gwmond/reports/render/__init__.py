"""How reports are written: one kind of table and document, for terminals, files and pages."""
