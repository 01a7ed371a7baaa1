-- Pilots that two ledgers have accounted: their time is in the sums twice. Nothing should be found;
-- docs/scale.md says how to divide a pool, and what to leave out. Edit the days (UTC).
WITH known AS (
    SELECT ledger, pilot, name AS known_as
    FROM pilots
    WHERE name <> '' AND day >= DATE '2026-11-01' AND day < DATE '2026-12-01'
    UNION
    SELECT ledger, pilot, factory_job AS known_as
    FROM pilots
    WHERE factory_job <> '' AND day >= DATE '2026-11-01' AND day < DATE '2026-12-01'
)
SELECT
    one.ledger AS ledger,
    other.ledger AS other_ledger,
    count(DISTINCT one.pilot) AS pilots,
    min(one.known_as) AS example
FROM known one
JOIN known other ON one.known_as = other.known_as AND one.ledger < other.ledger
GROUP BY one.ledger, other.ledger
ORDER BY one.ledger, other.ledger;
