#!/usr/bin/env bash
# Runs a command (from the second argument on) as the user of the image, or as USERSPEC, in a root (first argument) that is mounted read-only, as
# `docker run --read-only` does: no user can write a file.
set -euo pipefail
root=${1:?folder}
shift
exec unshare --mount bash -euc '
  mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && mount -t proc proc "$0/proc" && mount --bind /dev "$0/dev"
  exec chroot --userspec='"${USERSPEC:-65532:65532}"' "$0" /usr/bin/env -i HOME=/ NODE_ENV=production NODE_COMPILE_CACHE=/app/compiled MALLOC_ARENA_MAX=1 MALLOC_MMAP_THRESHOLD_=65536 MALLOC_TRIM_THRESHOLD_=65536 "$@"' "$root" "$@"
