-- Why sites were idle, in canonical hours by site and resource: the states sum to the capacity.
-- The numbers are those of all ledgers together. Edit the days (UTC).
SELECT
    site,
    resource,
    sum(micros) / 3.6e9 AS capacity,
    sum(CASE WHEN state = 'provisioned' THEN micros ELSE 0 END) / 3.6e9 AS provisioned,
    sum(CASE WHEN state = 'provisioning_bottleneck' THEN micros ELSE 0 END) / 3.6e9
        AS provisioning_bottleneck,
    sum(CASE WHEN state = 'insufficient_demand' THEN micros ELSE 0 END) / 3.6e9
        AS insufficient_demand,
    sum(CASE WHEN state = 'filling' THEN micros ELSE 0 END) / 3.6e9 AS filling,
    sum(CASE WHEN state = 'down' THEN micros ELSE 0 END) / 3.6e9 AS down,
    sum(CASE WHEN state = 'unknown' THEN micros ELSE 0 END) / 3.6e9 AS unknown
FROM (
    SELECT site, resource, state, CAST(canonical_micros AS DECIMAL(38, 0)) AS micros
    FROM site_hours
    WHERE day >= DATE '2026-11-01' AND day < DATE '2026-12-01'
) amounts
GROUP BY site, resource
HAVING sum(micros) > 0
ORDER BY site, resource;
