#!/usr/bin/env bash
# Runs the scenarios of the daemon and of references, the rules of objects, and the trust in tokens, with other kube-apiserver versions, and with 1.36
# the whole suite: KUBE_VERSIONS, separated by spaces. First, with every expression in the sandbox, the suites of patches, attacks and the daemon.
set -euo pipefail
cd "$(dirname "$0")/.."
echo "== endpointSyncer.sandbox.localEvaluation: false"
LOCAL_EVALUATION=false npx vitest run test/syncer/patch test/attack test/scenarios
for version in ${KUBE_VERSIONS:-v1.32.13 v1.34.4 v1.36.3}; do
  echo "== kube-apiserver $version"
  case $version in
    v1.36.*) files=() ;;
    *)
      files=(
        test/e2e/kube-version.test.ts test/e2e/real.test.ts test/e2e/real-references.test.ts
        test/e2e/endpoint-rules.test.ts test/e2e/token-audiences.test.ts test/e2e/trust.test.ts
      )
      ;;
  esac
  KUBE_VERSION=$version npx vitest run --config vitest.cluster.config.ts "${files[@]}"
done
