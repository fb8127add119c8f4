/** Every command with wrong files, wrong values of flags, and servers that are none: an error that says what is wrong, where, and what to do, never a stack. */

import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { kubeconfigText } from '../support/kubeconfig.ts';
import { testFolder } from '../support/test-folder.ts';
import { capturedRun, spawnedRun } from './captured-run.ts';

const { folder, write } = testFolder();

/** Nothing listens there. */
const DEAD = write('dead.kubeconfig', kubeconfigText('dead', { server: 'http://127.0.0.1:1' }, {}));
const OTHER = write('other.kubeconfig', kubeconfigText('other', { server: 'http://127.0.0.1:2' }, {}));
const CONFIG = configFile('config.yaml', OTHER, DEAD);
const OBJECT = write('object.yaml', '{apiVersion: v1, kind: Endpoints, metadata: {name: a, namespace: b}}\n');
const VALUES = write('values.yaml', 'sync: {toHost: {endpoints: {enabled: true}}}\n');

const HTTPS = 'https://127.0.0.1:1';
const PLUGIN = {
  command: 'no-such-plugin',
  apiVersion: 'client.authentication.k8s.io/v1',
  interactiveMode: 'Never',
};

const FILES: Readonly<Record<string, string>> = {
  missing: join(folder, 'missing'),
  folder: join(folder, 'folder'),
  empty: write('empty', ''),
  binary: write('binary', new Uint8Array([0, 255, 254, 1, 128, 10, 200])),
  'not YAML': write('not-yaml', 'a: [\n\tb: {'),
  list: write('list', '- 1\n- [2]\n'),
  scalar: write('scalar', 'text'),
  null: write('null', 'null\n'),
  'many documents': write('documents', 'a: 1\n---\n- 2\n---\nnull\n---\n"x"\n'),
  'members of other types': write(
    'types',
    'apiVersion: 1\nkind: []\nmetadata: 1\nclusters: 1\nusers: {}\ncontexts: [1]\ncurrent-context: []\nsync: 1\nendpointSyncer: [1]\nmanagementApi: x\npatches: {a: 1}\ncases: 2\nconfig: 3\n',
  ),
  deep: write('deep', '['.repeat(5000)),
  aliases: write('aliases', `a: &a [1]\n${'b: [*a, *a]\n'.repeat(3)}`),
  'a tab': write('tab', 'sync:\n\n\ttoHost: {}\n'),
  'a typo': write('typo', 'sync:\n  toHost:\n    endpoints: {enabled: tru}\nendpointSyncer:\n  nmae: a\n'),
  'an expression that ends too soon': write(
    'expression',
    'sync:\n  toHost:\n    endpoints:\n      patches:\n        - {path: metadata.labels.a, expression: value +}\nendpointSyncer: {name: a}\n',
  ),
  'values of the chart': write('chart', 'replicaCount: 1\nconfig:\n  endpointSyncer: {nmae: a}\n'),
  'old values': write('old', 'syncer: {}\nsync: {endpoints: {enabled: true}}\n'),
  'dead kubeconfig': DEAD,
  'no current context': kubeconfigFile('no-context', { 'current-context': '' }),
  'an unknown context': kubeconfigFile('context', { 'current-context': 'other' }),
  'no cluster': kubeconfigFile('no-cluster', { clusters: [] }),
  'no server': kubeconfigFile('no-server', {}, {}),
  'a URL of another scheme': kubeconfigFile('scheme', {}, { server: 'ftp://127.0.0.1' }),
  'no base64': kubeconfigFile('base64', {}, { server: HTTPS, 'certificate-authority-data': '!!' }),
  'no PEM': kubeconfigFile('pem', {}, { server: HTTPS, 'certificate-authority-data': 'YWJj' }),
  'no certificate file': kubeconfigFile('ca', {}, { server: HTTPS, 'certificate-authority': 'nowhere' }),
  'no token file': kubeconfigFile('token', {}, { server: HTTPS }, { tokenFile: 'nowhere' }),
  'no plugin': kubeconfigFile('plugin', {}, { server: HTTPS }, { exec: PLUGIN }),
  'a certificate without its key': kubeconfigFile(
    'key',
    {},
    { server: HTTPS },
    { 'client-certificate-data': 'YWJj' },
  ),
};

/** What no server starts with, as a configuration. */
const STARTS_NOTHING = ['missing', 'folder', 'binary', 'not YAML', 'list', 'scalar', 'deep', 'a tab'];

const WITH_CONFIG: readonly string[] = [
  'run',
  'api',
  'playground',
  'healthcheck',
  'status',
  'diff',
  'explain a/b',
  'cleanup',
  'adopt',
  'rbac',
  'names a/b',
  'store verify',
  'keys list',
  'keys bootstrap',
  'keys create --user a',
  'patch',
  'eval 1',
  'render -f OBJECT',
];
const LIVE: readonly string[] = ['status', 'diff', 'explain a/b', 'cleanup --yes'];
/** With a wrong file in the place of `FILE`. */
const WITH_FILE: readonly string[] = WITH_CONFIG.map((command) => `${command} --config FILE`).concat([
  'validate FILE',
  'validate --vcluster-config FILE --config CONFIG',
  'validate CONFIG FILE',
  'test FILE',
  'render --config CONFIG -f FILE',
  'render --config CONFIG -f OBJECT --host FILE',
  'render --config CONFIG -f OBJECT --reverse --virtual FILE',
  'patch --config CONFIG -f FILE',
  'patch --patches FILE -f OBJECT',
  'patch --config CONFIG -f OBJECT --virtual-object FILE',
  'patch --config CONFIG -f OBJECT --reverse --host-object FILE',
  'eval 1 --context FILE',
  'migrate --name a --vcluster-config FILE',
  'migrate --config FILE --vcluster-config VALUES',
  'migrate --vcluster a -n b --host-kubeconfig FILE',
  'migrate --fleet --host-kubeconfig FILE',
  ...[...LIVE, 'adopt'].flatMap((command) => [
    `${command} --config CONFIG --virtual-kubeconfig FILE`,
    `${command} --config CONFIG --host-kubeconfig FILE`,
    `${command} --config CONFIG --vcluster-config FILE`,
  ]),
  ...LIVE.map((command) => `${command} --vcluster a -n b --host-kubeconfig FILE`),
  'rbac --config CONFIG --vcluster-config FILE',
  'store verify FILE',
  'store verify --config CONFIG FILE',
  'keys list --kubeconfig FILE',
  'keys get a --kubeconfig FILE',
  'keys list --server https://127.0.0.1:1 --token-file FILE',
  'keys list --server https://127.0.0.1:1 --token x --certificate-authority FILE',
  'keys token --kubeconfig FILE',
  'keys token --server https://127.0.0.1:1 --token x -o kubeconfig --cluster-certificate-authority FILE',
]);

const COMMANDS: readonly string[] = [
  'status --config CONFIG',
  'diff --config CONFIG',
  'explain a/b --config CONFIG',
  'cleanup --yes --config CONFIG',
  'adopt --config CONFIG',
  'rbac --config CONFIG',
  'names a/b --config CONFIG',
  'validate CONFIG',
  'test VALUES',
  'render --config CONFIG -f OBJECT',
  'patch --config CONFIG -f OBJECT',
  'eval 1',
  'migrate --name a --vcluster-config VALUES',
  'healthcheck --config CONFIG --timeout 0 --url http://127.0.0.1:1',
  ...['list', 'get a', 'rotate a', 'revoke a', 'create', 'token'].map(
    (command) => `keys ${command} --server https://127.0.0.1:1 --token x`,
  ),
  'keys bootstrap --config MISSING',
  'run --config MISSING',
  'api --config MISSING',
  'demo --output nonsense',
  'playground --config MISSING',
  'store verify MISSING',
  'completion bash',
  'schema',
  'version',
];

const VALUES_OF_FLAGS = [
  '',
  'nonsense',
  '-1',
  '1e999',
  '{',
  '[1',
  '=',
  'a\u0000b',

  'https://[',
  '127.0.0.1:99999',
];

beforeAll(() => mkdirSync(join(folder, 'folder')));

/** Configurations, kubeconfigs and values, by the flags that name them. */
const OF_SETUP =
  /^(?:validate|.* --(?:config|kubeconfig|vcluster-config|host-kubeconfig|virtual-kubeconfig)) FILE/u;

describe('wrong files', () => {
  test.each(WITH_FILE)('%s', async (line) => {
    const isServer = /^(?:run|api|playground) /u.test(line);
    const files = Object.entries(FILES).filter(([name]) => !isServer || STARTS_NOTHING.includes(name));
    // With a valid file, the commands of keys say what else is wrong.
    const isOfKeys = /^(?:keys|store) .*--config FILE/u.test(line);
    const isOfSetup = OF_SETUP.test(line);
    const checked = (text: string, file: string): boolean => isOfSetup && (!isOfKeys || text.includes(file));
    const problems: string[] = [];
    for (const [name, file] of files) {
      const args = argsOf(line, { FILE: file });
      problems.push(
        ...(await problemsOf([args], (text) => (checked(text, file) ? unhelpful(text, name, file) : []))),
      );
    }
    expect(problems).toEqual([]);
  });
});

/** What is true of a kubeconfig as a whole. */
const OF_NO_LINE =
  /cannot be read|not text in UTF-8|has no current-context|has no context|has no clusters|has no token|no edit leaves everything else/u;

const ADVICE =
  /\b(?:use|write|set|name|pass|choose|correct|remove|add|save|give|install|convert|check|let|start|change|move|did you mean|must be|is required|known here|is the .* right|has the keys)\b|unexpected|more than 100 levels/iu;

/** Of the errors in an output: those that do not say which file, which line, or what to do. */
function unhelpful(text: string, name: string, file: string): string[] {
  const isError = (line: string): boolean =>
    !line.includes(': warning: ') &&
    // A finding begins with its file or flag, and any other error with that word.
    (line.startsWith(folder) || /^(?:error|--[a-z-]+): /u.test(line));
  return text.split('\n').flatMap((line) => {
    if (!isError(line)) return [];
    const isPlaced = line.startsWith(`${file}:`)
      ? /:\d+:\d+: |: is not UTF-8 text/u.test(line)
      : !line.startsWith(`error: ${file}`) || / line \d+/u.test(line);
    const faults = [
      line.includes(folder) ? '' : 'no file',
      ADVICE.test(line) ? '' : 'no advice',
      isPlaced || OF_NO_LINE.test(line) ? '' : 'no line',
    ];
    return faults.flatMap((fault) => (fault === '' ? [] : [`${name}: ${fault}: ${line}`]));
  });
}

describe('wrong values of flags', () => {
  test.each(COMMANDS)('%s', async (line) => {
    const args = argsOf(line);
    const { out } = await capturedRun([...args, '--help']);
    // Those of the configuration, which come last, are read in one place.
    const own = line.startsWith('rbac') ? out : (out.split(/^.*--(?:config|server) </mu)[0] ?? '');
    const flags = [...own.matchAll(/^ +(?:-\w, )?(--[\w-]+) </gmu)].map(([, flag]) => flag ?? '');
    const given = flags.flatMap((flag) => VALUES_OF_FLAGS.map((value) => [...args, flag, value]));
    const more = [['--nonsense'], ['nonsense'], ['a', 'b', 'c']].map((words) => [...args, ...words]);
    expect(await problemsOf([...given, ...more])).toEqual([]);
  });
});

describe('a server that is no API server', () => {
  const ANSWERS: Readonly<Record<string, string>> = {
    'a page': '<html>',
    nothing: '',
    null: 'null',
    'an object': '{}',
    'a list': '[]',
    'another kind': '{"kind":"Pod","items":1,"metadata":{"resourceVersion":1}}',
    'malformed items': '{"kind":"List","metadata":{"resourceVersion":"1"},"items":[null,1,{"metadata":[]}]}',
  };
  let answer = '';
  const problemsWith = async (args: string[]): Promise<string[]> => {
    const problems: string[] = [];
    for (const [name, text] of Object.entries(ANSWERS)) {
      answer = text;
      problems.push(...(await problemsOf([args])).map((problem) => `${name}: ${problem}`));
    }
    return problems;
  };
  const servers: Server[] = [];
  let config = '';
  let url = '';
  beforeAll(async () => {
    const urls = [0, 1].map(async (index) => {
      const server = createServer((_, response) => response.end(answer)).listen(0, '127.0.0.1');
      servers.push(server);
      await once(server, 'listening');
      const { port } = server.address() as AddressInfo;
      url = `http://127.0.0.1:${port}`;
      return write(`${index}.kubeconfig`, kubeconfigText('s', { server: url }, {}));
    });
    const [virtual = '', host = ''] = await Promise.all(urls);
    config = configFile('served.yaml', virtual, host);
  });
  afterAll(() => {
    for (const server of servers) server.close();
  });

  test.each([...LIVE, 'cleanup --yes --unused', 'adopt'])('%s', async (line) => {
    expect(await problemsWith(argsOf(`${line} --config CONFIG`, { CONFIG: config }))).toEqual([]);
  });

  test.each(['keys list --token x --server URL', 'healthcheck --config CONFIG --timeout 0 --url URL'])(
    '%s',
    async (line) => {
      expect(await problemsWith(argsOf(line, { URL: url }))).toEqual([]);
    },
  );

  test('healthcheck says why there is no response', async () => {
    const closed = createServer().listen(0, '127.0.0.1');
    await once(closed, 'listening');
    const { port } = closed.address() as AddressInfo;
    closed.close();
    await once(closed, 'close');
    const causes = [
      [`http://127.0.0.1:${port}`, /: connect ECONNREFUSED/u, 1],
      [url.replace('http:', 'https:'), /: .*wrong version number/u, 1],
      ['127.0.0.1:8080', /--url.*must be an http/u, 2],
    ] as const;
    for (const [at, cause, code] of causes) {
      const ended = await capturedRun(
        argsOf('healthcheck --config CONFIG --timeout 0 --url URL', { URL: at }),
      );
      expect([ended.code, ended.err]).toEqual([code, expect.stringMatching(cause)]);
    }
  });

  test.each([...LIVE, 'migrate'])('%s --vcluster', async (line) => {
    const host = join(folder, '1.kubeconfig');
    const args = argsOf(`${line} --vcluster a -n b --host-kubeconfig FILE`, { FILE: host });
    expect(await problemsWith(args)).toEqual([]);
  });
});

describe('as a process', () => {
  test.each([
    ['demo --once --dir OBJECT', 1],
    ['store backup --output MISSING/backup.db --config CONFIG', 1],
    ['api --data-dir OBJECT', 1],
    ['api --bind-address 192.0.2.1:1 --data-dir FOLDER', 1],
    ['run --config CONFIG --http-bind-address 192.0.2.1:1', 1],
    // Nothing but a timer keeps it alive while it waits.
    ['healthcheck --config CONFIG --timeout 2s --url http://127.0.0.1:1', 1],
  ])('%s', async (line, code) => {
    const ended = await spawnedRun(argsOf(line, { FOLDER: folder }));
    expect(ended.err).not.toMatch(/^ +at /mu);
    expect([ended.code, ended.err]).toEqual([code, expect.stringMatching(/\S/u)]);
  });
});

function kubeconfigFile(
  name: string,
  members: object,
  cluster: object = { server: HTTPS },
  user: object = { token: 'x' },
): string {
  const whole = JSON.parse(kubeconfigText('k', cluster, user)) as object;
  return write(`${name}.kubeconfig`, JSON.stringify({ ...whole, ...members }, undefined, 1));
}

function configFile(name: string, virtual: string, host: string): string {
  return write(
    name,
    `sync: {toHost: {endpoints: {patches: [{path: metadata.labels.a, reference: {apiVersion: v1, kind: Secret}}]}}}
endpointSyncer: {name: a, virtual: {kubeconfig: ${virtual}}, host: {kubeconfig: ${host}, namespace: c}}
managementApi: {dataDir: ${folder}/data}\n`,
  );
}

function argsOf(line: string, files: Readonly<Record<string, string>> = {}): string[] {
  const known: Readonly<Record<string, string>> = {
    CONFIG,
    OBJECT,
    VALUES,
    MISSING: join(folder, 'missing'),
    ...files,
  };
  return line.split(' ').map((word) => known[word] ?? word);
}

/** Of runs that have not ended with an exit code of the interface, or not said why, or shown a stack, or what else `check` finds in an error. */
async function problemsOf(
  runs: readonly string[][],
  check: (text: string) => string[] = () => [],
): Promise<string[]> {
  const problems: string[] = [];
  for (const args of runs) {
    const thrown = (error: unknown) => ({ code: -1, out: '', err: String((error as Error).stack) }); // as main.ts prints it
    const { code, out, err } = await capturedRun(args).catch(thrown);
    const isExplained = code === 0 || (out + err).trim() !== '';
    if (![0, 1, 2].includes(code) || !isExplained || /^ +at .*$/mu.test(out + err))
      problems.push(`${JSON.stringify(args)}: exit ${code}\n${out}${err}`);
    else if (code !== 0) problems.push(...check(out + err));
  }
  return problems;
}
