/** Texts that tenants and callers choose may have characters that control a terminal: nothing that people read has them raw. */

import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test, vi } from 'vitest';
import { TerminalError } from '../../src/base/errors.ts';
import { textAt, type JsonObject } from '../../src/base/json.ts';
import { createLogger, silentLogger } from '../../src/base/logger.ts';
import { ActivityLogger } from '../../src/showcase/demo-activity.ts';
import { formatChange } from '../../src/cli/live/diff.ts';
import { guarded, paintFor } from '../../src/cli/output/terminal.ts';
import { formatTable } from '../../src/cli/output/listing.ts';
import { asList, problemOf } from '../../src/kube/client/responses.ts';
import { AggregatingRecorder, EventSeriesLimit } from '../../src/kube/event-recorder.ts';
import { asJson, ENDPOINTS, type KubeObject } from '../../src/kube/object.ts';
import { failure } from '../../src/kube/status-error.ts';
import { KEYS_PATH, MINIMAL, startKeyServer } from '../access-keys/keys/key-server.ts';
import { testFolder } from '../support/test-folder.ts';
import { capturedRun } from '../cli/captured-run.ts';
import { FakeClock, settle } from '../support/fake-clock.ts';
import { CONTROL_TEXT, expectPlain, RAW } from './control-text.ts';

const { write } = testFolder();

describe('control characters of tenants', () => {
  test('are escaped in logs of JSON', async () => {
    const lines: string[] = [];
    const destination = { write: (line: string) => void lines.push(line) };
    const logger = await createLogger({ level: 'info', format: 'json', destination });
    const fields = {
      note: CONTROL_TEXT,
      list: [{ [CONTROL_TEXT]: CONTROL_TEXT }],
      err: new Error(CONTROL_TEXT),
    };
    logger.info(fields, 'synced');
    expectPlain(lines.join(''));
    expect(JSON.parse(lines[0] ?? '')).toMatchObject({ msg: 'synced', level: 'info' });
    expectPlain(textAt(JSON.parse(lines[0] ?? '') as JsonObject, 'err', 'stack')); // a line of the log
  });

  test('are escaped in logs for a terminal', () => {
    const file = join(import.meta.dirname, '../../src/base/logger.ts');
    const text = JSON.stringify(CONTROL_TEXT);
    const program = `import { createLogger } from ${JSON.stringify(file)};
      const logger = await createLogger({ level: 'info', format: 'pretty' });
      logger.warn({ note: ${text}, err: new Error(${text}) }, 'failed');`;
    const env = { ...process.env, NO_COLOR: '1' };
    const { stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', program], {
      env,
      encoding: 'utf8',
    });
    expect(stderr).toContain('failed');
    expectPlain(stderr);
  });

  test('are escaped in the notes of Events', async () => {
    const created: KubeObject[] = [];
    const recorder = new AggregatingRecorder({
      client: {
        create: async (_, object) => (created.push(object), object),
        patch: async () => ({ metadata: { name: 'e' } }),
      },
      reportingController: 'endpoint-syncer/controller',
      reportingInstance: 'test',
      clock: new FakeClock(),
      random: () => 0.5,
      logger: silentLogger,
      metrics: { event: () => undefined },
      limit: new EventSeriesLimit(),
    });
    const regarding = { metadata: { name: 'web', namespace: 'default', uid: 'u' } };
    recorder.event(regarding, ENDPOINTS, { type: 'Warning', reason: 'PatchFailed', note: CONTROL_TEXT });
    await settle();
    expect(created).toHaveLength(1);
    expectPlain(textAt(asJson(created[0] as KubeObject), 'note'));
  });

  test('are escaped in the lines of the demo', () => {
    const written: string[] = [];
    const errors = vi
      .spyOn(process.stderr, 'write')
      .mockImplementation((line) => written.push(String(line)) > 0);
    const demo = new ActivityLogger((line) => written.push(line));
    demo.info({ key: CONTROL_TEXT, outcome: 'created', latencyMs: 1 }, 'synced');
    demo.warn({ key: CONTROL_TEXT, error: CONTROL_TEXT }, 'failed');
    errors.mockRestore();
    expect(written).toHaveLength(2);
    for (const line of written) expectPlain(line);
  });

  test('are escaped in tables, differences and errors of commands', async () => {
    expectPlain(formatTable([['NAME'], [CONTROL_TEXT]]));
    const after = { metadata: { name: 'web', namespace: 'default', annotations: { note: CONTROL_TEXT } } };
    const change = { cluster: 'host', resource: ENDPOINTS, reason: 'x', before: undefined, after } as const;
    expectPlain(formatChange(change as never, false, paintFor({ isTTY: false } as never)) ?? '');
    const written: string[] = [];
    const errors = vi
      .spyOn(process.stderr, 'write')
      .mockImplementation((line) => written.push(String(line)) > 0);
    await guarded(() => Promise.reject(new TerminalError(CONTROL_TEXT)));
    await guarded(() => Promise.reject(failure(422, 'Invalid', CONTROL_TEXT)));
    errors.mockRestore();
    expect(written).toHaveLength(2);
    for (const line of written) expectPlain(line);
  });

  test('are escaped in what eval, render and test print of values and errors', async () => {
    const value = JSON.stringify(CONTROL_TEXT);
    const object = `apiVersion: v1
kind: Endpoints
metadata: {name: web, namespace: shop, annotations: {note: ${value}}}
subsets: [{addresses: [{ip: 192.0.2.1}], ports: [{port: 80}]}]
`;
    const config = (expression: string): string =>
      write(
        `${expression.length}.yaml`,
        `sync: {toHost: {endpoints: {patches: [{path: metadata.annotations.note, expression: ${JSON.stringify(expression)}}]}}}\nendpointSyncer: {name: vc, host: {namespace: a}}\n`,
      );
    const objects = write('object.yaml', object);
    const cases = write(
      'own.endpoint-syncer-test.yaml',
      `config: ${config('value')}\ncases: [{name: one, virtual: [object.yaml], expect: {host: [{kind: Endpoints, metadata: {annotations: {note: x}}}]}}]\n`,
    );
    const runs = [
      ['eval', 'value', '--value', value],
      ['eval', '({list: [value]})', '--value', value],
      ['eval', 'JSON.parse(value)', '--value', value],
      ['eval', '(() => { throw new Error(value); })()', '--value', value],
      ['render', '--config', config('value'), '-f', objects],
      ['render', '--config', config('(() => { throw new Error(value); })()'), '-f', objects],
      ['patch', '--config', config('value + value'), '-f', objects, '-o', 'json'],
      ['test', cases],
    ];
    for (const args of runs) {
      const { out, err } = await capturedRun(args);
      expect([args, RAW.test(out + err)]).toEqual([args, false]);
      expect(out + err).toMatch(/\\u001b|\\e/u);
    }
  });

  test('reach standard error by what escapes them, and by nothing else', () => {
    const source = join(import.meta.dirname, '../../src');
    const raw = readdirSync(source, { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts') && !name.includes('assets'))
      .filter((name) => readFileSync(join(source, name), 'utf8').includes('stderr.write('));
    expect(raw.toSorted()).toEqual([
      'cli/output/terminal.ts',
      'kube/credentials/kubeconfig.ts',
      'main.ts',
      'showcase/demo-activity.ts',
    ]);
  });

  test('make no name of an object', () => {
    const item = { metadata: { name: CONTROL_TEXT, namespace: 'default' } };
    expect(problemOf(item)).toContain('metadata.name');
    expect(() => asList({ metadata: {}, items: [item] }, ENDPOINTS)).toThrow('metadata.name');
  });
});

describe('control characters of callers of the key API', () => {
  test('are escaped in messages', async () => {
    await using api = await startKeyServer();
    const asked: [string, string, object?][] = [
      ['POST', KEYS_PATH, { metadata: { name: CONTROL_TEXT }, spec: MINIMAL }],
      ['POST', KEYS_PATH, { metadata: { name: 'k' }, spec: { ...MINIMAL, type: CONTROL_TEXT } }],
      [
        'POST',
        KEYS_PATH,
        { metadata: { name: 'k' }, spec: { ...MINIMAL, scope: { rules: [{ cluster: CONTROL_TEXT }] } } },
      ],
      ['POST', KEYS_PATH, { metadata: { name: 'k' }, spec: { ...MINIMAL, [CONTROL_TEXT]: 1 } }],
      ['GET', `${KEYS_PATH}/${encodeURIComponent(CONTROL_TEXT)}`],
      ['GET', `${KEYS_PATH}?labelSelector=${encodeURIComponent(CONTROL_TEXT)}`],
      ['GET', `${KEYS_PATH}?fieldSelector=${encodeURIComponent(CONTROL_TEXT)}`],
      ['GET', `${KEYS_PATH}?limit=${encodeURIComponent(CONTROL_TEXT)}`],
      ['GET', `/apis/${encodeURIComponent(CONTROL_TEXT)}/v1/x`],
    ];
    for (const [method, path, body] of asked) {
      const { json } = await api.send(method, path, body as never);
      const texts = [json?.['message'], ...messagesOf(json?.['details'])].map(String);
      expect([path, texts.filter((text) => RAW.test(text))]).toEqual([path, []]);
    }
  });

  test('are escaped in tables', async () => {
    await using api = await startKeyServer();
    await api.create('k1', { displayName: `x${CONTROL_TEXT}` });
    const accept = 'application/json;as=Table;v=v1;g=meta.k8s.io';
    const { json } = await api.send('GET', KEYS_PATH, undefined, { accept });
    const { rows } = json as unknown as { rows: { cells: unknown[] }[] }; // a Table
    expectPlain(JSON.stringify(rows.map(({ cells }) => cells)));
    expect(rows[0]?.cells.some((cell) => RAW.test(String(cell)))).toBe(false);
  });
});

function messagesOf(details: unknown): unknown[] {
  const causes = (details as { causes?: { field?: string; message?: string }[] } | undefined)?.causes ?? [];
  return causes.flatMap(({ field, message }) => [field, message]);
}
