#!/bin/sh
# Brings the schemas of Temporal's databases up to date, before its server starts.
set -eu
# Without a port the tool would use MySQL's port, also for Postgres.
: "${SQL_HOST:?}" "${SQL_PORT:?}"
SQL_PASSWORD=$(cat "$SECRETS_DIR/temporal/temporal_password")
export SQL_PASSWORD SQL_PLUGIN=postgres12 SQL_USER=temporal
for schema in temporal visibility; do
  database=temporal
  [ "$schema" = temporal ] || database=temporal_$schema
  # Does nothing if the schema exists.
  temporal-sql-tool --database "$database" setup-schema --version 0.0
  temporal-sql-tool --database "$database" update-schema --schema-name "postgresql/v12/$schema"
done
