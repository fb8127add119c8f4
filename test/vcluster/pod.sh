#!/usr/bin/env bash
# pod.sh DIR VOLUMES COMMAND...: runs a command with the volumes of a Pod at their paths and its /etc/hosts, in the Pod's network namespace, where
# "ip netns exec" has started it with mounts of its own (pod.ts).
set -euo pipefail
dir=$1 volumes=$2
shift 2
for path in $volumes; do mount --bind "$dir$path" "$path"; done
mount --bind "$dir/hosts" /etc/hosts
exec "$@"
