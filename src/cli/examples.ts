/** Two examples for each command and subcommand, as `--help` shows them. */

export const EXAMPLES: Readonly<Record<string, readonly [string, string]>> = {
  run: ['endpoint-syncer run --config config.yaml', 'endpoint-syncer run --config config.yaml --dry-run'],
  demo: ['endpoint-syncer demo', 'endpoint-syncer demo --once --dir /tmp/demo'],
  render: [
    'endpoint-syncer render --config config.yaml -f objects/',
    'endpoint-syncer render --config config.yaml -f live.yaml | kubectl diff -f -',
  ],
  patch: [
    'endpoint-syncer patch --config config.yaml -f web.yaml',
    'kubectl get endpoints web -o yaml | endpoint-syncer patch --patches patches.yaml',
  ],
  test: ['endpoint-syncer test', 'endpoint-syncer test config/ --coverage -o junit'],
  diff: [
    'endpoint-syncer diff --config config.yaml',
    'endpoint-syncer diff --config config.yaml shop/web --show-bookkeeping',
  ],
  status: [
    'endpoint-syncer status --config config.yaml -n shop -l app=web',
    "endpoint-syncer status --config config.yaml -o 'jsonpath={[*].host.name}'",
  ],
  explain: [
    'endpoint-syncer explain --config config.yaml shop/web',
    'endpoint-syncer explain --config config.yaml --host web-x-shop-x-my-vcluster -o json',
  ],
  healthcheck: [
    'endpoint-syncer healthcheck --config config.yaml',
    'endpoint-syncer healthcheck --config config.yaml --url http://syncer-endpoint-syncer-metrics:8080 --timeout 5m',
  ],
  cleanup: [
    'endpoint-syncer cleanup --config config.yaml --dry-run',
    'endpoint-syncer cleanup --config config.yaml --unused --yes',
  ],
  adopt: [
    'endpoint-syncer adopt --config config.yaml',
    'endpoint-syncer adopt --name my-vcluster --host-namespace team-a --virtual-kubeconfig restored.kubeconfig',
  ],
  eval: [
    `endpoint-syncer eval 'value.toUpperCase()' --value '"web"'`,
    'endpoint-syncer eval --jsonl < expressions.jsonl',
  ],
  validate: ['endpoint-syncer validate config.yaml', 'endpoint-syncer validate -o json config/*.yaml'],
  playground: ['endpoint-syncer playground', 'endpoint-syncer playground --config config.yaml --port 8000'],
  names: [
    'endpoint-syncer names shop/web --name my-vcluster --host-namespace team-a',
    'endpoint-syncer names --reverse web-x-shop-x-my-vcluster --config config.yaml',
  ],
  migrate: [
    'endpoint-syncer migrate --vcluster-config vcluster.yaml --name my-vcluster',
    'helm get values my-vcluster | endpoint-syncer migrate --vcluster-config - --name my-vcluster',
  ],
  rbac: [
    'endpoint-syncer rbac --config config.yaml --cluster host | kubectl apply -f -',
    'endpoint-syncer rbac --config config.yaml --as vcluster-values',
  ],
  api: [
    'endpoint-syncer api --config config.yaml',
    'endpoint-syncer api --bind-address 127.0.0.1:8443 --data-dir ./data',
  ],
  keys: [
    'endpoint-syncer keys bootstrap --config config.yaml',
    'endpoint-syncer keys list --config config.yaml',
  ],
  'keys bootstrap': [
    'endpoint-syncer keys bootstrap --config config.yaml',
    'endpoint-syncer keys bootstrap --config config.yaml -o kubeconfig > admin.kubeconfig',
  ],
  'keys create': [
    'endpoint-syncer keys create --name ci --user ci-bot --ttl 90d --scope-cluster cluster-a > ci.key',
    'endpoint-syncer keys create --team payments -o kubeconfig --config config.yaml > payments.kubeconfig',
  ],
  'keys get': [
    'endpoint-syncer keys get ci --kubeconfig admin.kubeconfig',
    "endpoint-syncer keys get ci -o jsonpath='{.spec.user}' --config config.yaml",
  ],
  'keys list': [
    'endpoint-syncer keys list --expiring 7d --sort-by expires -o wide --config config.yaml',
    "endpoint-syncer keys list --field-selector spec.user=ci-bot -o jsonpath='{.items[*].metadata.name}'",
  ],
  'keys rotate': [
    'endpoint-syncer keys rotate ci --overlap 1h --config config.yaml > ci.key',
    'endpoint-syncer keys rotate ci -o kubeconfig --config config.yaml > ci.kubeconfig',
  ],
  'keys revoke': [
    'endpoint-syncer keys revoke ci --kubeconfig admin.kubeconfig',
    'endpoint-syncer keys revoke ci --disable --config config.yaml',
  ],
  'keys token': [
    'endpoint-syncer keys token --ttl 10m --server https://keys.example.com --token-file ci.key',
    'endpoint-syncer keys token -o kubeconfig --kubeconfig ci.kubeconfig --cluster-server https://10.0.0.1:6443',
  ],
  store: [
    'endpoint-syncer store backup --output backup.db --config config.yaml',
    'endpoint-syncer store verify backup.db',
  ],
  schema: ['endpoint-syncer schema > endpoint-syncer.schema.json', 'endpoint-syncer schema --modeline'],
  completion: [
    'source <(endpoint-syncer completion bash)',
    'endpoint-syncer completion fish > ~/.config/fish/completions/endpoint-syncer.fish',
  ],
  version: ['endpoint-syncer version', 'endpoint-syncer version -o json'],
};
