"""The configuration: one TOML file, validated whole before anything starts."""
