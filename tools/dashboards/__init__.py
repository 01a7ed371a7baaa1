"""Makes Grafana's dashboards: ``python -m tools.dashboards`` writes etc/grafana/dashboards/."""
