-- Where the time of pilots went, in canonical hours by site: the categories sum to the total.
-- The numbers are those of "gwmond report --by site", of all ledgers together. Edit the days (UTC).
SELECT
    site,
    resource,
    sum(micros) / 3.6e9 AS total,
    sum(CASE WHEN category = 'goodput' THEN micros ELSE 0 END) / 3.6e9 AS goodput,
    sum(CASE WHEN category = 'pilot_overhead' THEN micros ELSE 0 END) / 3.6e9 AS pilot_overhead,
    sum(CASE WHEN category = 'decision_problem' THEN micros ELSE 0 END) / 3.6e9 AS decision_problem,
    sum(CASE WHEN category = 'validation_fails' THEN micros ELSE 0 END) / 3.6e9 AS validation_fails,
    sum(CASE WHEN category = 'misconfiguration_badput' THEN micros ELSE 0 END) / 3.6e9
        AS misconfiguration_badput,
    sum(CASE WHEN category = 'preemption_badput' THEN micros ELSE 0 END) / 3.6e9
        AS preemption_badput,
    sum(CASE WHEN category = 'unclassified' THEN micros ELSE 0 END) / 3.6e9 AS unclassified
FROM (
    -- Exact, however large a sum becomes.
    SELECT site, resource, category, CAST(amount_micros AS DECIMAL(38, 0)) AS micros
    FROM pilot_hours
    WHERE measure = 'canonical'
        AND day >= DATE '2026-11-01' AND day < DATE '2026-12-01'
) amounts
GROUP BY site, resource
HAVING sum(micros) > 0
ORDER BY site, resource;
