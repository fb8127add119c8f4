/** The command table. A command's module is loaded only when that command runs, so `run` does not pay for the others. */

import { Command, CommanderError, Help, type Option } from 'commander';
import type { ExitWith } from './output/terminal.ts';

interface CommandModule {
  /** Adds arguments, options and the action, which ends through `exitWith`, or with 0. */
  define(command: Command, exitWith: ExitWith): void;
}

type CommandGroup = Readonly<Record<string, readonly [summary: string, load: () => Promise<CommandModule>]>>;

const MAIN: CommandGroup = {
  demo: ['sync sample objects between two clusters in this process', () => import('./demo.ts')],
  run: ['sync until interrupted', () => import('./run.ts')],
  validate: ['check configuration files and report all errors', () => import('./validate.ts')],
  render: ['show offline what a sync would write', () => import('./offline/render.ts')],
  test: ['run test cases of patches, offline', () => import('./test/test.ts')],
  diff: ['show what a sync would change in both clusters', () => import('./live/diff.ts')],
  status: ['list virtual objects with their host names and states', () => import('./live/status.ts')],
  explain: ['explain why an object is, or is not, synced', () => import('./live/explain.ts')],
  migrate: [
    'show what to change so that this program syncs what vCluster syncs',
    () => import('./migrate.ts'),
  ],
  cleanup: [
    'delete the objects that the syncer of this virtual cluster created',
    () => import('./live/cleanup.ts'),
  ],
};

const MORE: CommandGroup = {
  playground: ['try patches in the browser, without a cluster', () => import('./playground.ts')],
  rbac: ['print the roles that a configuration needs', () => import('./rbac.ts')],
  adopt: ['take the copies on the host to be of this virtual cluster', () => import('./live/adopt.ts')],
  names: ['translate names between the virtual cluster and the host', () => import('./names.ts')],
  keys: ['create, list, rotate and revoke access keys; issue cluster tokens', () => import('./keys/keys.ts')],
  store: ['back up, check or compact the store of the key and token API', () => import('./store.ts')],
  api: ['serve only the key and token API', () => import('./api.ts')],
};

/** For scripts and images; `--help` does not list them. */
const HIDDEN: CommandGroup = {
  patch: [
    'apply only the patches, to one object of any kind; render without the rest of the sync',
    () => import('./offline/patch.ts'),
  ],
  eval: ['evaluate expressions in the sandbox, as the playground does', () => import('./eval.ts')],
  healthcheck: ['wait until a daemon is ready and runs a configuration', () => import('./healthcheck.ts')],
  schema: ['print the JSON Schema of the configuration file', () => import('./schema.ts')],
  completion: [
    'print a script that completes command lines in bash, zsh or fish',
    async () => (await import('./completion.ts')).completionCommand(allCommands),
  ],
  version: [
    'print the version of this program and of Node.js',
    async () => ({ define: (await import('./installation.ts')).defineVersion }),
  ],
};

interface CommandEntry {
  readonly name: string;
  readonly group: string | undefined;
  readonly summary: string;
  readonly load: () => Promise<CommandModule>;
}

export const COMMANDS: readonly CommandEntry[] = [
  ...entriesOf('Commands:', MAIN),
  ...entriesOf('More commands:', MORE),
  ...entriesOf(undefined, HIDDEN),
];

function entriesOf(group: string | undefined, commands: CommandGroup): CommandEntry[] {
  return Object.entries(commands).map(([name, [summary, load]]) => ({ name, group, summary, load }));
}

/** Runs one command line and returns the process's exit code: 0 ok, 1 failure or differences, 2 usage or configuration. */
export async function runProgram(argv: readonly string[]): Promise<number> {
  let exitCode = 0;
  const program = rootCommand();
  const words = normalizeArgs(argv);
  const wanted = words.find((word) => !word.startsWith('-'));
  for (const entry of COMMANDS) {
    const command = await commandFor(program, entry, entry.name === wanted && ((code) => (exitCode = code)));
    program.addCommand(command, { hidden: entry.group === undefined });
  }
  try {
    await program.parseAsync([...words], { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    return error.exitCode === 0 ? 0 : 2;
  }
  return exitCode;
}

/** Rewrites `--version` to `version` and `help COMMAND…` to `COMMAND… --help`, so that the command's module is loaded. */
function normalizeArgs(argv: readonly string[]): readonly string[] {
  const [first, name, ...rest] = argv;
  if (first === '--version') return ['version', ...argv.slice(1)];
  if (first !== 'help' || name === undefined) return argv;
  return COMMANDS.some((entry) => entry.name === name) ? [name, ...rest, '--help'] : [name];
}

async function allCommands(): Promise<Command[]> {
  const program = rootCommand();
  return Promise.all(COMMANDS.map((entry) => commandFor(program, entry, () => undefined)));
}

function rootCommand(): Command {
  return new Command('endpoint-syncer')
    .description(
      'Syncs Endpoints, EndpointSlices and Services between a virtual Kubernetes cluster and its host.',
    )
    .option('--version', 'print the version')
    .showHelpAfterError('(run with --help for the options)')
    .showSuggestionAfterError(true)
    .configureOutput({ outputError: (text, write) => write(withConfigHint(text)) })
    .configureHelp({
      visibleOptions: ownOptionsFirst,
      // Groups come in the order of the visible options, not in that of their definition.
      groupItems: (_unsorted, visible, groupOf) => new Help().groupItems(visible, visible, groupOf),
      boxWrap: wrapText,
      subcommandDescription: (command) => command.summary() || command.description(),
    })
    .exitOverride();
}

/** A file without its flag is most likely the configuration. */
function withConfigHint(text: string): string {
  const message = text.trimEnd();
  const file = message.slice(message.lastIndexOf(' ') + 1, -1);
  if (!message.startsWith('error: too many arguments') || !/\.(?:ya?ml|json)$/u.test(file)) return text;
  return `${message.slice(0, -1)}; did you mean --config ${file}?\n`;
}

/** Options of the command itself come before those of the configuration file, which are in groups with a heading. */
function ownOptionsFirst(command: Command): Option[] {
  const options = new Help().visibleOptions(command);
  const isOwn = ({ helpGroupHeading }: Option): boolean => helpGroupHeading === undefined;
  return [...options.filter(isOwn), ...options.filter((option) => !isOwn(option))];
}

/** Example command lines are not wrapped, so that they can be copied. */
function wrapText(text: string, width: number): string {
  const help = new Help();
  return text
    .split('\n')
    .map((line) => (line.startsWith('  ') ? line : help.boxWrap(line, width)))
    .join('\n');
}

function describe(name: string, summary: string): string {
  const sentence = `${summary.charAt(0).toUpperCase()}${summary.slice(1)}.`;
  const lines = (EXAMPLES[name] ?? []).map((line) => `  ${line}`);
  return `${sentence}\n\nExamples:\n${lines.join('\n')}`;
}

/** With `onExit` false only the name and the summary are needed, and the module is not loaded. */
async function commandFor(
  program: Command,
  entry: CommandEntry,
  onExit: ((code: number) => void) | false,
): Promise<Command> {
  const command = program
    .createCommand(entry.name)
    .helpGroup(entry.group ?? '')
    .summary(entry.summary)
    .description(describe(entry.name, entry.summary))
    .copyInheritedSettings(program);
  if (onExit === false) return command;
  (await entry.load()).define(command, async (...work) => {
    const { guarded } = await import('./output/terminal.ts');
    onExit(await guarded(...work));
  });
  for (const part of command.commands) {
    const summary = part.description();
    part.summary(summary).description(describe(`${entry.name} ${part.name()}`, summary));
  }
  return command;
}

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
    'endpoint-syncer migrate --vcluster my-vcluster -n team-a',
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
