-- Spark 3.4 or later: the exports of all ledgers as tables. Edit the directory, then:
--   spark-sql --conf spark.sql.session.timeZone=UTC -i etc/sql/spark.sql -f etc/sql/pilot-time.sql
CREATE OR REPLACE TEMPORARY VIEW pilot_hours USING parquet
OPTIONS (path '/data/gwmond/pilot_hours');
CREATE OR REPLACE TEMPORARY VIEW site_hours USING parquet
OPTIONS (path '/data/gwmond/site_hours');
CREATE OR REPLACE TEMPORARY VIEW pilots USING parquet
OPTIONS (path '/data/gwmond/pilots');
