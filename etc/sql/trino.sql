-- Trino with the Hive connector: the exports of all ledgers as tables of hive.gwmond. Edit the
-- location, run this once; run the three CALLs again after each export, as days are partitions.
CREATE TABLE hive.gwmond.pilot_hours (
    hour timestamp(6), resource varchar, measure varchar, category varchar, outcome varchar,
    site varchar, entry varchar, "group" varchar, evidence varchar,
    amount_micros bigint, amount_seconds double, ledger varchar, day date
) WITH (
    external_location = 's3://gwmond/pilot_hours', format = 'PARQUET',
    partitioned_by = ARRAY['ledger', 'day']
);
CREATE TABLE hive.gwmond.site_hours (
    hour timestamp(6), resource varchar, state varchar, reason varchar, site varchar,
    entry varchar, canonical_micros bigint, canonical_seconds double, ledger varchar, day date
) WITH (
    external_location = 's3://gwmond/site_hours', format = 'PARQUET',
    partitioned_by = ARRAY['ledger', 'day']
);
-- Columns are found by name, so that pilots may have more than these.
CREATE TABLE hive.gwmond.pilots (
    pilot bigint, name varchar, factory_job varchar, site varchar, entry varchar,
    "start" timestamp(6), "end" timestamp(6), ledger varchar, day date
) WITH (
    external_location = 's3://gwmond/pilots', format = 'PARQUET',
    partitioned_by = ARRAY['ledger', 'day']
);
CALL hive.system.sync_partition_metadata('gwmond', 'pilot_hours', 'FULL');
CALL hive.system.sync_partition_metadata('gwmond', 'site_hours', 'FULL');
CALL hive.system.sync_partition_metadata('gwmond', 'pilots', 'FULL');
