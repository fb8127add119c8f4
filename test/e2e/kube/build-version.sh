#!/usr/bin/env bash
# Builds kube-apiserver and kube-controller-manager of another version (first argument, such as v1.32.13) into a folder (second argument), for the
# compatibility suite. The module file of that version pins everything, and the checksum database of Go verifies it, so no go.sum is kept here.
set -euo pipefail
version=${1:?version}
out=$(mkdir -p "${2:?folder}" && cd "$2" && pwd)
module=$(mktemp -d)
trap 'rm -rf "$module"' EXIT
cd "$module"
pinned=$(go mod download -json "k8s.io/kubernetes@$version" | sed -n 's/.*"GoMod": "\(.*\)",/\1/p')
go mod init kube 2> /dev/null
grep -E '^(go|godebug) ' "$pinned" > directives
sed -i '/^go /d' go.mod && cat directives >> go.mod
go mod edit -require "k8s.io/kubernetes@$version"
minor=${version#v1.}; minor=${minor%%.*}
# The module refers to its staging folders, which only its repository has: they are published as v0 modules. Where a module proxy lacks the patch
# version of one, an earlier patch of the same minor version has the same API.
for name in $(sed -n 's,^\s*\(k8s.io/[a-z-]*\) => .*,\1,p' "$pinned"); do
  for ((patch = ${version##*.}; patch > 0; patch--)); do
    go mod download "$name@v0.$minor.$patch" 2> /dev/null && break
  done
  go mod edit -replace "$name=$name@v0.$minor.$patch"
done
pkg=k8s.io/component-base/version
flags="-s -w -X $pkg.gitVersion=$version -X $pkg.gitMajor=1 -X $pkg.gitMinor=$minor"
for name in kube-apiserver kube-controller-manager; do
  [ -x "$out/$name" ] && [ "$(cat "$out/$name.version" 2> /dev/null)" = "$version" ] && continue
  CGO_ENABLED=0 go build -mod=mod -trimpath -ldflags "$flags" -o "$out/$name" "k8s.io/kubernetes/cmd/$name"
  echo "$version" > "$out/$name.version"
done
