/** The command `validate`: exit codes, formats, positions and warnings. */

import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { configJsonSchema } from '../../../src/config/schema/json-schema.ts';
import { capturedRun } from '../captured-run.ts';

const MAIN = join(import.meta.dirname, '..', '..', '..', 'src', 'main.ts');

interface Outcome {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

let folder = '';
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'endpoint-syncer-'));
  writeFileSync(join(folder, 'good.yaml'), 'endpointSyncer: {name: vc}\n');
  writeFileSync(
    join(folder, 'bad.yaml'),
    'endpointSyncer:\n  name: vc\n  wrokers: 5\n  onHostDelete: deleteVirtual\n',
  );
});
afterAll(() => rmSync(folder, { recursive: true }));

/** Runs in this process with the folder as working directory, or in a separate process if there is standard input. */
async function run(
  args: string[],
  { input, env = {} }: { input?: string; env?: Record<string, string> } = {},
): Promise<Outcome> {
  if (input !== undefined) return spawned(args, input);
  const here = process.cwd();
  for (const name of ['ENDPOINT_SYNCER_CONFIG', 'VCLUSTER_NAME']) vi.stubEnv(name, env[name]);
  process.chdir(folder);
  try {
    const { code, out, err } = await capturedRun(args);
    return { code, stdout: out, stderr: err };
  } finally {
    process.chdir(here);
    vi.unstubAllEnvs();
  }
}

function spawned(args: readonly string[], input: string): Promise<Outcome> {
  return new Promise((resolve) => {
    const { ENDPOINT_SYNCER_CONFIG: _file, VCLUSTER_NAME: _name, ...env } = process.env;
    const child = execFile(process.execPath, [MAIN, ...args], { cwd: folder, env }, (error, stdout, stderr) =>
      resolve({ code: typeof error?.code === 'number' ? error.code : 0, stdout, stderr }),
    );
    child.stdin?.end(input);
  });
}

describe('validate', () => {
  test('a valid file: a line on standard error, nothing on standard output', async () => {
    expect(await run(['validate', 'good.yaml'])).toEqual({ code: 0, stdout: '', stderr: '1 file: valid\n' });
  });

  test('every problem with its line and caret, exit 2', async () => {
    expect(await run(['validate', 'bad.yaml', 'good.yaml', 'none.yaml'])).toEqual({
      code: 2,
      stdout: `bad.yaml:3:3: endpointSyncer.wrokers: unknown key "wrokers", did you mean "workers"?
  wrokers: 5
  ^

bad.yaml:4:17: endpointSyncer.onHostDelete: warning: controllers of the host cluster, and other replicas without leaderElection, delete Endpoints too: those are then deleted in the virtual cluster
  onHostDelete: deleteVirtual
                ^

none.yaml: cannot be read: there is no such file
`,
      stderr: '3 files: 2 errors and 1 warning\n',
    });
  });

  test('a path that never matches is a warning, with --strict an error', async () => {
    const text = `endpointSyncer: {name: vc}
sync: {toHost: {endpoints: {patches: [{path: "subsets[*].adresses[*].ip", expression: value}]}}}
`;
    writeFileSync(join(folder, 'never.yaml'), text);
    const message = 'never matches: subsets has no field "adresses", did you mean "addresses"?';
    const place = 'never.yaml:2:58: sync.toHost.endpoints.patches[0].path: ';
    const lax = await run(['validate', 'never.yaml']);
    expect(lax.stdout).toContain(`${place}warning: ${message}\n`);
    expect(lax).toMatchObject({ code: 0, stderr: '1 file: 1 warning\n' });
    const strict = await run(['validate', '--strict', 'never.yaml']);
    expect(strict.stdout).toContain(`${place}${message}\n`);
    expect(strict).toMatchObject({ code: 2, stderr: '1 file: 1 error\n' });
  });

  test('a file for the key API alone needs no name of a virtual cluster, one for run does', async () => {
    const validated = (text: string): Promise<Outcome> => {
      writeFileSync(join(folder, 'api.yaml'), text);
      return run(['validate', 'api.yaml']);
    };
    expect(await validated('managementApi: {dataDir: data}\n')).toMatchObject({ code: 0, stdout: '' });
    const sync = await validated('managementApi: {dataDir: data}\nsync: {}\n');
    expect([sync.code, sync.stdout]).toEqual([
      2,
      expect.stringContaining('endpointSyncer.name: is required'),
    ]);
    const days = await validated('managementApi: {maxTtl: 30d}\n');
    expect(days.stdout).toContain('found "30d": d is not a unit, write 720h');
  });

  test('JSON for scripts', async () => {
    const { code, stdout, stderr } = await run(['validate', '-o', 'json', 'bad.yaml', 'good.yaml']);
    expect([code, stderr]).toEqual([2, '']);
    expect(JSON.parse(stdout)).toEqual([
      {
        file: 'bad.yaml',
        line: 3,
        column: 3,
        path: 'endpointSyncer.wrokers',
        severity: 'error',
        message: 'unknown key "wrokers", did you mean "workers"?',
      },
      expect.objectContaining({ line: 4, column: 17, severity: 'warning' }),
    ]);
    expect(await run(['validate', '-o', 'json', 'good.yaml'])).toMatchObject({ code: 0, stdout: '[]\n' });
  });

  test('standard input, the environment, flags', async () => {
    const [piped, flagged] = await Promise.all([
      run(['validate', '-'], { input: 'endpointSyncer: {name: A}' }),
      run(['validate', '--name', 'vc', '--workers', '0', '-'], { input: '' }),
    ]);
    const fromEnvironment = await run(['validate'], { env: { ENDPOINT_SYNCER_CONFIG: 'good.yaml' } });
    const nothing = await run(['validate']);
    expect([piped.code, piped.stdout.split(' ')[0]]).toEqual([2, '<stdin>:1:24:']);
    expect([fromEnvironment.code, fromEnvironment.stdout]).toEqual([0, '']);
    expect([flagged.code, flagged.stdout]).toEqual([
      2,
      '--workers: endpointSyncer.workers: must be at least 1, found 0\n',
    ]);
    expect([nothing.code, nothing.stdout]).toEqual([
      2,
      'endpointSyncer.name: is required: the name of the virtual cluster, here, with --name or in VCLUSTER_NAME\n',
    ]);
  });

  test('usage errors end with 2 too', async () => {
    const format = await run(['validate', '-o', 'xml', 'good.yaml']);
    const option = await run(['validate', '--wrokers', '5']);
    const word = await run(['validate', '--log-level', 'loud']);
    expect([format.code, option.code, word.code]).toEqual([2, 2, 2]);
    expect(option.stderr).toContain('--workers');
  });
});

describe('schema', () => {
  test('prints a modeline that works in any folder', async () => {
    const { code, out } = await capturedRun(['schema', '--modeline']);
    const url = /^# yaml-language-server: \$schema=(file:\/\/\S+)\n$/u.exec(out)?.[1] ?? '';
    expect([code, readFileSync(new URL(url), 'utf8')]).toEqual([0, configJsonSchema()]);
  });

  test('prints the schema, which is the shipped one', async () => {
    const printed = await run(['schema']);
    const checked = await run(['schema', '--check']);
    expect(JSON.parse(printed.stdout)).toMatchObject({ title: 'endpoint-syncer configuration' });
    expect(checked).toEqual({ code: 0, stdout: '', stderr: '' });
  });
});
