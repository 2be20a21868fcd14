#!/bin/sh
# Creates the files of secrets/ that docker-compose.yml needs. Existing files are not changed. Only you can open the folder
# secrets, but the users of the containers must also be able to read its files and the folders in it.
set -eu
cd "$(dirname "$0")/.."
mkdir -p secrets/receiver secrets/temporal
chmod 700 secrets
chmod 755 secrets/receiver secrets/temporal
# Until 0.2.0 all files were in secrets/ itself.
[ ! -f secrets/webhook_secrets ] || mv secrets/webhook_secrets secrets/receiver/
[ ! -f secrets/temporal_password ] || mv secrets/temporal_password secrets/temporal/
random() { od -An -N24 -tx1 /dev/urandom | tr -d ' \n'; }
make() {
  [ -e "secrets/$1" ] || printf "${2:+%s\n}" "$2" > "secrets/$1"
  chmod 644 "secrets/$1"
}
make postgres_password "$(random)"
make temporal/temporal_password "$(random)"
make migrator_url "postgres://metersync_migrator:$(random)@postgres:5432/warehouse"
make worker_url "postgres://metersync_worker:$(random)@postgres:5432/warehouse"
make codec_keys "first:$(head -c 32 /dev/urandom | base64)"
# Settings of alarms, which are optional.
for optional in notify_url notify_secret heartbeat_url; do make "$optional" ''; done
for yours in service_api_key receiver/webhook_secrets; do
  if [ -s "secrets/$yours" ]; then chmod 644 "secrets/$yours"; else echo "write secrets/$yours, then run this again"; fi
done
