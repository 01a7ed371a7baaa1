"""Manual pages and completion, made from the parsers of the commands and from etc/gwmond.toml."""
