# For those who have pint (https://cloudflare.github.io/pint), from the root of the repository:
#   pint --offline --config .pint.hcl lint etc/prometheus
# gwmond's own tests (tests/alerts) hold the same rules without it.

parser {
  include = [ "etc/prometheus/gwmond-.*" ]
}

checks {
  disabled = [
    # Aggregations say "without", so that labels which a site adds (cluster, region) stay. pint fears
    # that a label which gwmond adds would break a division: a test compares all labels with the code.
    "promql/fragile",
  ]
}

rule {
  match {
    kind = "alerting"
  }
  label "severity" {
    severity = "bug"
    value    = "(critical|warning|info)"
    required = true
  }
  annotation "summary" {
    severity = "bug"
    required = true
  }
  annotation "description" {
    severity = "bug"
    required = true
  }
  annotation "runbook_url" {
    severity = "bug"
    value    = ".*/runbooks#gwmond[a-z]+"
    required = true
  }
}
