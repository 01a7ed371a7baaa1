-- DuckDB 1.1 or later: the exports of all ledgers as tables. Edit the directory, then:
--   duckdb -init etc/sql/duckdb.sql < etc/sql/pilot-time.sql
SET file_search_path = '/data/gwmond';
CREATE OR REPLACE VIEW pilot_hours AS
SELECT * FROM read_parquet('pilot_hours/ledger=*/day=*/*.parquet',
    hive_partitioning = true, hive_types = {'ledger': VARCHAR, 'day': DATE});
CREATE OR REPLACE VIEW site_hours AS
SELECT * FROM read_parquet('site_hours/ledger=*/day=*/*.parquet',
    hive_partitioning = true, hive_types = {'ledger': VARCHAR, 'day': DATE});
CREATE OR REPLACE VIEW pilots AS
SELECT * FROM read_parquet('pilots/ledger=*/day=*/*.parquet',
    hive_partitioning = true, hive_types = {'ledger': VARCHAR, 'day': DATE});
