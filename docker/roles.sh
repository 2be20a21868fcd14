#!/bin/sh
# Creates the logins of docker-compose.yml, with the passwords of its secrets, and Temporal's databases.
set -eu
secrets=$SECRETS_DIR
scripts=$(dirname "$0")
PGPASSWORD=$(cat "$secrets/postgres_password")
export PGPASSWORD PGUSER=postgres

# Prints the password that the address in a file contains.
password_in() {
  password=$(sed -n 's|^postgres://[^:/]*:\([A-Za-z0-9]*\)@.*|\1|p' "$secrets/$1")
  [ -n "$password" ] || { echo "secrets/$1 has to be postgres://LOGIN:PASSWORD@…, of letters and digits" >&2; exit 1; }
  echo "$password"
}
migrator=$(password_in migrator_url)
worker=$(password_in worker_url)
temporal=$(cat "$secrets/temporal/temporal_password")

run() { psql --no-psqlrc --quiet --tuples-only --set=ON_ERROR_STOP=1 "$@"; }
on_temporal() { run --host="$TEMPORAL_HOST" --dbname=postgres "$@"; }

PGOPTIONS="-c metersync.migrator_password=$migrator -c metersync.worker_password=$worker" \
  run --host="$WAREHOUSE_HOST" --dbname=warehouse --file="$scripts/roles.sql"
PGOPTIONS="-c temporal.password=$temporal" on_temporal --file="$scripts/temporal.sql"
for database in temporal temporal_visibility; do
  there=$(on_temporal --command="select datname from pg_database where datname = '$database'")
  [ -n "$there" ] || on_temporal --command="create database $database owner temporal"
  on_temporal --command="revoke all on database $database from public"
done
