#!/usr/bin/env bash
# pod.sh DIR COMMAND...: runs a command with the network and the volumes of vCluster's Pod at their paths, in new namespaces (main.ts). DIR/created
# lists the folders that did not exist.
set -euo pipefail
dir=$1
shift
ip link set lo up
ip addr add "$POD_IP/32" dev lo
for path in data binaries pki var/lib/vcluster var/run/secrets/kubernetes.io/serviceaccount etc/endpoint-syncer etc/vcluster; do
  mkdir -p "$dir/$path"
  [ -e "/$path" ] || echo "/$path" >> "$dir/created"
  mkdir -p "/$path"
  mount --bind "$dir/$path" "/$path"
done
# Cluster DNS.
{
  cat /etc/hosts
  echo "$POD_IP $VCLUSTER_NAME-0 $VCLUSTER_NAME $VCLUSTER_NAME.$POD_NAMESPACE $VCLUSTER_NAME.$POD_NAMESPACE.svc"
  echo "127.0.0.1 $VCLUSTER_NAME-etcd $VCLUSTER_NAME-etcd-headless $VCLUSTER_NAME-etcd-0.$VCLUSTER_NAME-etcd-headless.$POD_NAMESPACE"
} > "$dir/hosts"
mount --bind "$dir/hosts" /etc/hosts
exec "$@"
