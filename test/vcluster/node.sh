#!/usr/bin/env bash
# node.sh DIR COMMAND...: runs a command as on the node of the host cluster, in new namespaces (main.ts). DIR/hosts stands for the cluster DNS.
set -euo pipefail
dir=$1
shift
ip link set lo up
# The Service "kubernetes" of the host, whose API server listens on every address.
ip addr add 10.0.0.1/32 dev lo
mount -t tmpfs tmpfs /run/netns
cp /etc/hosts "$dir/hosts"
mount --bind "$dir/hosts" /etc/hosts
exec "$@"
