#!/bin/sh
# Runs a command until it succeeds, for at most some seconds: sh retry.sh SECONDS COMMAND ARGUMENT...
# When a job of docker-compose.yml ends with an error, "docker compose up" gives up for good, whether or not Docker restarts
# the job. So the job itself tries again. Each attempt prints its error, and the last one stays the end of the log.
set -u
seconds=$1
shift
end=$(($(date +%s) + seconds))
while :; do
  status=0
  "$@" || status=$?
  [ "$status" -ne 0 ] || exit 0
  [ "$(date +%s)" -lt "$end" ] || break
  sleep 1
done
echo "no success in $seconds s: the error of the last attempt is above" >&2
exit "$status"
