#!/bin/sh
# Creates the namespace of Temporal once its server is there. Workflows that have ended are kept for three days.
set -eu
namespace=${TEMPORAL_NAMESPACE:-default}
for _ in $(seq 60); do
  if temporal operator namespace describe --namespace "$namespace" > /dev/null 2>&1; then exit 0; fi
  temporal operator namespace create --namespace "$namespace" --retention 72h && continue
  sleep 1
done
echo "the namespace $namespace could not be made" >&2
exit 1
