#!/usr/bin/env bash
# Writes the repository that publishes a release (first argument, OWNER/NAME) into the files that name it: package, chart, alerts, and pages.
set -euo pipefail
repository=${1:?OWNER/NAME}
cd "$(dirname "$0")/.."
owner=${repository%%/*}
files=(package.json charts/endpoint-syncer/{Chart.yaml,README.md,values.yaml,files/alerts.yaml} docs/deploy.md)
# In lower case, as the registry requires.
sed -i "s#endpoint-syncer/endpoint-syncer#${repository,,}#g; s#endpoint-syncer\.github\.io/endpoint-syncer/#${owner,,}.github.io/${repository#*/}/#g" "${files[@]}"
