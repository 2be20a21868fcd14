#!/bin/sh
# Creates the namespace of Temporal. Workflows that have ended are kept for three days.
set -eu
namespace=$TEMPORAL_NAMESPACE
operate() {
  temporal operator namespace "$@" --namespace "$namespace" --client-connect-timeout 5s --command-timeout 30s
}
# Whatever is wrong with the server, creating the namespace says it, too.
operate describe > /dev/null 2>&1 || operate create --retention 72h
