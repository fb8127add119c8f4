/** kubectl against the key and token API: the commands that users run on keys, and their mistakes. */

import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse, stringify } from 'yaml';
import { startComposed, type Composed } from '../access-keys/composed-api.ts';
import { eventually } from '../support/eventually.ts';
import { kubeconfigText } from '../support/kubeconfig.ts';
import { suiteClusters } from './suite-clusters.ts';

let api: Composed;
let folder: string;

beforeAll(async () => {
  api = await startComposed();
  folder = mkdtempSync(join(tmpdir(), 'endpoint-syncer-kubectl-'));
  const { text } = await api.key('root', { user: 'root', groups: ['platform:admins'] });
  writeFileSync(join(folder, 'kubeconfig'), kubeconfig(text));
});

afterAll(async () => {
  await api[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

function kubeconfig(token: string): string {
  const authority = Buffer.from(api.ca).toString('base64');
  const cluster = { server: api.api.url, 'certificate-authority-data': authority };
  return kubeconfigText('c', cluster, { token });
}

interface Output {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

interface RunOptions {
  readonly input?: string;
  /** What `kubectl edit` calls. */
  readonly editor?: string;
}

/** A command line as a shell reads it. */
function run(command: string, { input = '', editor = 'false' }: RunOptions = {}): Promise<Output> {
  const env = {
    ...process.env,
    KUBECONFIG: join(folder, 'kubeconfig'),
    KUBECACHEDIR: join(folder, 'cache'),
    KUBE_EDITOR: editor,
  };
  const script = command.replaceAll(/\bkubectl\b/gu, suiteClusters().kubectl);
  const child = spawn('bash', ['-c', script], { env, cwd: folder });
  const result = { out: '', err: '' };
  child.stdout.on('data', (chunk: Buffer) => (result.out += String(chunk)));
  child.stderr.on('data', (chunk: Buffer) => (result.err += String(chunk)));
  child.stdin.end(input);
  return new Promise((resolve) => child.once('close', (code) => resolve({ code, ...result })));
}

/** The output of a command that must succeed. */
async function kubectl(command: string, options: RunOptions = {}): Promise<string> {
  const { code, out, err } = await run(`kubectl ${command}`, options);
  if (code !== 0) throw new Error(`kubectl ${command}: exit ${code}\n${out}${err}`);
  return out;
}

async function refusal(command: string, options: RunOptions = {}): Promise<string> {
  const { code, out, err } = await run(`kubectl ${command}`, options);
  if (code === 0) throw new Error(`kubectl ${command} was not refused: ${out}`);
  return err;
}

function manifest(name: string, spec: Record<string, unknown> = {}): string {
  return stringify({
    apiVersion: 'management.platform.sh/v1',
    kind: 'OwnedAccessKey',
    metadata: { name },
    spec: { displayName: name, user: 'alice', type: 'User', ttl: 3600, ...spec },
  });
}

const path = (name: string, expression: string): string => `get oak ${name} -o jsonpath='{${expression}}'`;

describe('create', () => {
  test('from YAML: the key is in the response, and in no later one', async () => {
    const created = await kubectl("create -f - -o jsonpath='{.spec.key}'", { input: manifest('made') });
    expect(created).toMatch(/^pak_\w+$/u);
    expect(await kubectl(path('made', '.spec'))).not.toContain('key');
    expect(await kubectl(`--token=${created} get oak -o name`)).toContain('/made\n');
  });

  test('from JSON, with generateName', async () => {
    const object = {
      apiVersion: 'management.platform.sh/v1',
      kind: 'OwnedAccessKey',
      metadata: { generateName: 'gen-' },
      spec: { displayName: 'G', team: 'ops', type: 'User', ttl: 0 },
    };
    expect(await kubectl('create -f - -o name', { input: JSON.stringify(object) })).toMatch(
      /^ownedaccesskey\.management\.platform\.sh\/gen-\w{5}\n$/u,
    );
  });

  test('a token: returned once, and not stored', async () => {
    const input =
      'apiVersion: management.platform.sh/v1\nkind: DirectClusterEndpointToken\nspec: {ttl: 600}\n';
    expect(await kubectl("create -f - -o jsonpath='{.status.token}'", { input })).toMatch(/^eyJ\S+$/u);
    expect(await refusal('get directclusterendpointtokens')).toContain(
      'the server does not allow this method',
    );
  });

  test('dry runs create nothing, and show no key', async () => {
    const input = manifest('dry');
    expect(await kubectl('create --dry-run=server -f - -o yaml', { input })).not.toContain('pak_');
    expect(await refusal('get oak dry')).toContain('"dry" not found');
  });

  test('the error for invalid input names every field', async () => {
    const input =
      'apiVersion: management.platform.sh/v1\nkind: OwnedAccessKey\nmetadata: {name: w}\nspec: {ttl: -1}\n';
    const err = await refusal('create -f -', { input });
    for (const field of ['spec.displayName', 'spec.type', 'spec.user', 'spec.ttl: Invalid value: -1']) {
      expect(err).toContain(field);
    }
    expect(await refusal('create -f -', { input: manifest('w', { bogus: 1 }) })).toContain(
      'unknown field "spec.bogus"',
    );
    expect(await refusal('create -f -', { input: manifest('w', { type: 'Bogus' }) })).toContain(
      'Unsupported value',
    );
    expect(
      await refusal('create -f -', { input: manifest('w', { scope: { roles: [{ role: 'nope' }] } }) }),
    ).toContain('spec.scope.roles[0].role');
    expect(await refusal('create -f -', { input: manifest('root') })).toContain('"root" already exists');
  });
});

describe('read', () => {
  beforeAll(async () => {
    await kubectl('create -f -', { input: manifest('read', { scope: { projects: [{ project: 'shop' }] } }) });
    await kubectl('label oak read app=shop');
  });

  test('get: table, wide, yaml, json, name, selectors', async () => {
    expect((await kubectl('get oak read')).split('\n')[0]).toMatch(
      /^NAME +DISPLAY NAME +SUBJECT +TYPE +DISABLED +EXPIRES +AGE$/u,
    );
    expect(await kubectl('get oak read -o wide')).toMatch(/LAST ACTIVITY +GROUPS +SCOPE/u);
    expect(await kubectl('get ownedaccesskey read -o yaml')).toContain('    - project: shop');
    expect(JSON.parse(await kubectl('get oak read -o json'))).toMatchObject({ kind: 'OwnedAccessKey' });
    expect(await kubectl('get oak -l app=shop -o name')).toBe('ownedaccesskey.management.platform.sh/read\n');
    expect(await kubectl('get oak --field-selector metadata.name=read -o name')).toContain('/read\n');
    expect(await kubectl('get oak --show-labels')).toContain('app=shop');
    expect(await kubectl('get oak --sort-by=.metadata.creationTimestamp -o name')).toContain('/read');
  });

  test('describe', async () => {
    const text = await kubectl('describe oak read');
    expect(text).toMatch(/^Name: +read$/mu);
    expect(text).toMatch(/Display Name: +read/u);
    expect(text).toMatch(/Project: +shop/u);
    expect(text).toMatch(/Expires At: +20\d\d-/u);
  });

  test('describe and events show the Event of a key that has expired', async () => {
    await kubectl('create -f -', { input: manifest('ended', { ttl: 1 }) });
    const text = await eventually(
      () => kubectl('describe oak ended'),
      (shown) => shown.includes('Expired'),
      { what: 'an Event in kubectl describe' },
    );
    expect(text).toMatch(
      /Events:\n.*\n.*\n +Normal +Expired +\S+ +endpoint-syncer +The access key expired at /u,
    );
    expect(await kubectl('events --for ownedaccesskey/ended')).toMatch(
      /Normal +Expired +OwnedAccessKey\/ended/u,
    );
    expect(await kubectl('get events')).toMatch(/Normal +Expired +ownedaccesskey\/ended/u);
  });

  test('create without -o names the command for a new secret', async () => {
    const { out, err } = await run('kubectl create -f -', { input: manifest('silent') });
    expect(out).toBe('ownedaccesskey.management.platform.sh/silent created\n');
    expect(err).toMatch(/^Warning: .*jsonpath.*endpoint-syncer keys rotate silent for a new one\n$/u);
  });

  test('explain', async () => {
    const all = await kubectl('explain ownedaccesskey --recursive');
    for (const field of [
      'displayName\t<string>',
      'connectorData',
      'requestTargets\t<[]string>',
      'lastActivity',
    ]) {
      expect(all).toContain(field);
    }
    expect(await kubectl('explain oak.spec.ttl')).toMatch(/FIELD: ttl <integer>[^]*DESCRIPTION:\n +\S/u);
    expect(await kubectl('explain directclusterendpointtoken.spec')).toContain('scope\t<');
  });

  test('api-resources, api-versions, version, auth', async () => {
    const resources = await kubectl('api-resources --api-group=management.platform.sh -o wide');
    expect(resources).toMatch(
      /ownedaccesskeys +oak +management.platform.sh\/v1 +false +OwnedAccessKey +create,delete,/u,
    );
    expect(await kubectl('api-versions')).toContain('management.platform.sh/v1\n');
    expect(await kubectl('version -o json')).toContain('"gitVersion": "v1.37.0+endpoint-syncer.');
    expect(await kubectl('auth can-i create oak')).toBe('yes\n');
    expect(await kubectl('auth whoami')).toMatch(/Username +root/u);
    const { text } = await api.key('ordinary', { user: 'olga', scope: { clusters: [{ cluster: 'a' }] } });
    expect((await run(`kubectl --token=${text} auth can-i delete oak`)).out).toMatch(
      /^no - access key scope/u,
    );
    expect(await refusal(`--token=${text} get oak`)).toContain('access key scope does not allow');
    expect(await refusal('--token=t-wrong get oak')).toContain('You must be logged in to the server');
  });

  test.each([
    'create -f made.yaml',
    'apply -f made.yaml',
    'apply --server-side -f made.yaml',
    'replace -f made.yaml',
    'get oak',
    'delete oak made',
    'auth whoami',
  ])('a disabled key: %s says so', async (command) => {
    writeFileSync(join(folder, 'made.yaml'), manifest('refused-made'));
    const name = `refused-${command.replaceAll(/[^a-z]+/gu, '-')}`;
    const { text } = await api.key(name);
    await kubectl(`patch oak ${name} --type=merge -p '{"spec":{"disabled":true}}'`);
    // Nothing of an earlier command is in the cache.
    rmSync(join(folder, 'cache'), { recursive: true, force: true });
    expect(await refusal(`--token=${text} ${command}`)).toMatch(
      /^error: You must be logged in to the server \([^]*platform access key is disabled\. Enable it or use another one\)\n$/u,
    );
  });

  test('another user does not see the key', async () => {
    const { text } = await api.key('stranger', { user: 'mallory' });
    expect(await kubectl(`--token=${text} get oak -o name`)).toBe(
      'ownedaccesskey.management.platform.sh/stranger\n',
    );
    expect(await refusal(`--token=${text} get oak read`)).toContain('"read" not found');
    expect(await refusal(`--token=${text} delete oak read`)).toContain('"read" not found');
  });

  test('a missing object or kind is an error', async () => {
    expect(await refusal('get oak nope')).toContain(
      '(NotFound): ownedaccesskeys.management.platform.sh "nope" not found',
    );
    expect(await refusal('get bogus')).toContain('the server doesn\'t have a resource type "bogus"');
  });
});

describe('write', () => {
  test('apply creates, changes, and keeps unchanged objects; the key is kept', async () => {
    const input = manifest('applied');
    expect(await kubectl('apply -f -', { input })).toBe(
      'ownedaccesskey.management.platform.sh/applied created\n',
    );
    expect(await kubectl('apply -f -', { input })).toBe(
      'ownedaccesskey.management.platform.sh/applied unchanged\n',
    );
    const changed = manifest('applied', { description: 'new', groups: ['a'] });
    const diff = await run('kubectl diff -f -', { input: changed });
    expect([diff.code, diff.out]).toEqual([1, expect.stringContaining('+  description: new')]);
    expect(await kubectl('apply -f -', { input: changed })).toContain('configured');
    expect(await kubectl('apply -f -', { input })).toContain('configured');
    expect(await kubectl(path('applied', '.spec.description'))).toBe('');
    expect(await refusal('apply -f -', { input: manifest('applied', { user: 'bob' }) })).toContain(
      'spec.user: Invalid value',
    );
  });

  test('apply --server-side: ownership, conflict, force, and removal of fields', async () => {
    const apply = (manager: string, ttl: number, more = ''): Promise<Output> =>
      run(`kubectl apply --server-side --field-manager ${manager} ${more} -f -`, {
        input: manifest('ssa', { ttl }),
      });
    expect((await apply('a', 600)).out).toBe(
      'ownedaccesskey.management.platform.sh/ssa serverside-applied\n',
    );
    const conflict = await apply('b', 900);
    expect([conflict.code, conflict.err]).toEqual([
      1,
      expect.stringContaining('conflict with "a": .spec.ttl'),
    ]);
    expect((await apply('b', 900, '--force-conflicts')).code).toBe(0);
    const managers = await kubectl(
      "get oak ssa --show-managed-fields -o jsonpath='{.metadata.managedFields[*].manager}'",
    );
    expect(managers.split(' ').toSorted()).toEqual(['a', 'b']);
    const fields = await kubectl('get oak ssa --show-managed-fields -o json');
    expect(fields).not.toContain('f:key');
  });

  test('edit: a valid change is saved, an invalid one is opened again', async () => {
    await kubectl('create -f -', { input: manifest('edited') });
    const editor = "sed -i 's/displayName: edited/displayName: By hand/'";
    expect(await kubectl('edit oak edited', { editor })).toBe(
      'ownedaccesskey.management.platform.sh/edited edited\n',
    );
    expect(await kubectl(path('edited', '.spec.displayName'))).toBe('By hand');
    const wrong = await run('kubectl edit oak edited', { editor: "sed -i 's/ttl: 3600/ttl: -5/'" });
    expect(wrong.err).toContain('"edited" is invalid');
    expect((await run('kubectl edit oak edited', { editor: 'true' })).err).toContain('Edit cancelled');
  });

  test('patch --type=json and merge; strategic is not supported for this kind', async () => {
    await kubectl('create -f -', { input: manifest('patched') });
    const add = '[{"op":"add","path":"/metadata/annotations/example.com~1x","value":"y"}]';
    await kubectl(`patch oak patched --type=json -p '${add}'`);
    await kubectl(`patch oak patched --type=merge -p '{"spec":{"ttl":600,"groups":["a"]}}'`);
    await kubectl(
      `patch oak patched --type=json -p '[{"op":"test","path":"/spec/ttl","value":600},{"op":"remove","path":"/spec/groups"}]'`,
    );
    expect(JSON.parse(await kubectl('get oak patched -o json'))).toMatchObject({
      metadata: { annotations: { 'example.com/x': 'y' } },
      spec: { ttl: 600 },
    });
    expect(await refusal(`patch oak patched --type=strategic -p '{}'`)).toContain(
      'accepted media types include: application/json-patch+json, application/merge-patch+json',
    );
    expect(
      await refusal(`patch oak patched --type=json -p '[{"op":"remove","path":"/spec/nope"}]'`),
    ).not.toBe('');
    expect(await refusal(`patch oak patched --type=merge -p '{"spec":{"key":"other"}}'`)).toContain(
      'spec.key: Invalid value',
    );
    expect(await kubectl(`patch oak patched --subresource=status --type=merge -p '{"status":{}}'`)).toContain(
      'patched',
    );
  });

  test('annotate, label, replace, restore', async () => {
    await kubectl('create -f -', { input: manifest('marked') });
    await kubectl('annotate oak marked note=one');
    await kubectl('annotate oak marked note=two --overwrite');
    await kubectl('label oak marked tier=gold');
    await kubectl('label oak marked tier-');
    expect(await kubectl(path('marked', '.metadata.annotations.note'))).toBe('two');
    expect(await refusal('label oak marked bad=a/b/c')).toContain('invalid label value');
    const text = await kubectl('get oak marked -o yaml');
    expect(
      await kubectl('replace -f -', { input: text.replace('displayName: marked', 'displayName: R') }),
    ).toContain('replaced');
    expect(await refusal('replace -f -', { input: text })).toContain('the object has been modified');
  });

  test('delete: one, by label, and an error for a missing key', async () => {
    await kubectl('create -f -', { input: manifest('gone') });
    expect(await kubectl('delete oak gone')).toContain('"gone" deleted');
    expect(await kubectl('delete oak gone --ignore-not-found')).toBe('');
    for (const name of ['many-1', 'many-2']) {
      await kubectl('create -f -', { input: manifest(name) });
      await kubectl(`label oak ${name} many=yes`);
    }
    expect((await kubectl('delete oak -l many=yes')).match(/deleted/gu)).toHaveLength(2);
    expect(await refusal('delete oak gone')).toContain('NotFound');
  });
});

describe('watch', () => {
  test('get -w shows every change', async () => {
    await kubectl('create -f -', { input: manifest('watched') });
    const env = {
      ...process.env,
      KUBECONFIG: join(folder, 'kubeconfig'),
      KUBECACHEDIR: join(folder, 'cache'),
    };
    const child = spawn(suiteClusters().kubectl, ['get', 'oak', 'watched', '-w', '--output-watch-events'], {
      env,
    });
    let out = '';
    child.stdout.on('data', (chunk: Buffer) => (out += String(chunk)));
    try {
      await eventually(
        () => out,
        (text) => text.includes('ADDED'),
      );
      await kubectl(`patch oak watched --type=merge -p '{"spec":{"disabled":true}}'`);
      await eventually(
        () => out,
        (text) => /MODIFIED +watched +watched +user\/alice +User +true/u.test(text),
      );
      await kubectl('delete oak watched');
      await eventually(
        () => out,
        (text) => text.includes('DELETED'),
      );
      expect(out).not.toContain('pak_');
    } finally {
      child.kill();
    }
  });

  test('wait --for', async () => {
    await kubectl('create -f -', { input: manifest('awaited') });
    const waiting = [
      kubectl("wait oak/awaited --for=jsonpath='{.spec.disabled}'=true --timeout=100s"),
      kubectl('wait oak/awaited --for=delete --timeout=100s'),
    ];
    await kubectl(`patch oak awaited --type=merge -p '{"spec":{"disabled":true}}'`);
    expect(await waiting[0]).toContain('condition met');
    await kubectl('delete oak awaited');
    expect(await waiting[1]).toContain('condition met');
    const { code, err } = await run(
      'kubectl wait oak/root --for=jsonpath={.spec.disabled}=true --timeout=1s',
    );
    expect([code, err]).toEqual([1, expect.stringContaining('timed out')]);
  });
});

describe('several keys in one file', () => {
  const item = (name: string, spec = {}): unknown => parse(manifest(name, spec));
  const list = (...items: unknown[]): string => stringify({ apiVersion: 'v1', kind: 'List', items });

  test('a List from get -o yaml can be applied unchanged', async () => {
    const input = list(item('list-a'), item('list-b'));
    expect(await kubectl('create -f - -o name', { input })).toMatch(/list-a\n.*list-b\n$/u);
    expect(await kubectl('apply -f - --server-side', { input })).toContain('list-b serverside-applied');
    const saved = await kubectl('get oak list-a list-b -o yaml');
    expect(saved).toContain('kind: List');
    expect(await kubectl('delete -f - -o name', { input: saved })).toMatch(/list-a\n.*list-b\n$/u);
    expect(await kubectl('create -f - -o name', { input: saved })).toMatch(/list-a\n.*list-b\n$/u);
  });

  test('each key is validated like a single one', async () => {
    const error = await refusal('create -f -', { input: list(item('list-c', { tll: 5 })) });
    expect(error).toContain('unknown field "spec.tll"');
    const input = stringify({ ...parse(manifest('list-d')), apiVersion: 'management.platform.sh/v1beta1' });
    expect(await refusal('create -f -', { input })).toContain(
      'no matches for kind "OwnedAccessKey" in version "management.platform.sh/v1beta1"',
    );
  });
});

test('impersonation is denied with the reason', async () => {
  for (const command of [
    'get oak --as alice',
    'auth can-i get oak --as alice',
    'delete oak --all --as alice',
  ]) {
    expect(await refusal(command)).toContain('impersonation is not supported');
  }
});
