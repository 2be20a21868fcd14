#!/bin/sh
# Creates the files of secrets/ that docker-compose.yml needs. Existing files are not changed. Only you can open the folder,
# but the users of the containers must also be able to read its files.
set -eu
cd "$(dirname "$0")/.."
mkdir -p secrets
chmod 700 secrets
random() { od -An -N24 -tx1 /dev/urandom | tr -d ' \n'; }
make() {
  [ -e "secrets/$1" ] || printf '%s\n' "$2" > "secrets/$1"
  chmod 644 "secrets/$1"
}
make postgres_password "$(random)"
make temporal_password "$(random)"
make migrator_url "postgres://metersync_migrator:$(random)@postgres:5432/warehouse"
make worker_url "postgres://metersync_worker:$(random)@postgres:5432/warehouse"
make codec_keys "first:$(head -c 32 /dev/urandom | base64)"
for yours in service_api_key webhook_secrets; do
  if [ -s "secrets/$yours" ]; then chmod 644 "secrets/$yours"; else echo "write secrets/$yours, then run this again"; fi
done
