/** Texts that tenants and callers choose may have characters that control a terminal: nothing that people read has them raw. */

import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { describe, expect, test, vi } from 'vitest';
import { TerminalError } from '../../src/base/errors.ts';
import { textAt, type JsonObject } from '../../src/base/json.ts';
import { createLogger, silentLogger } from '../../src/base/logger.ts';
import { ActivityLogger } from '../../src/cli/demo/demo-activity.ts';
import { formatChange } from '../../src/cli/live/diff.ts';
import { guarded, paintFor } from '../../src/cli/output/terminal.ts';
import { formatTable } from '../../src/cli/output/listing.ts';
import { asList, problemOf } from '../../src/kube/client/responses.ts';
import { createEventRecorder, EventSeriesLimit } from '../../src/kube/event-recorder.ts';
import { asJson, ENDPOINTS, type KubeObject } from '../../src/kube/object.ts';
import { failure } from '../../src/kube/status-error.ts';
import { KEYS_PATH, MINIMAL, startKeyServer } from '../access-keys/keys/key-server.ts';
import { FakeClock, settle } from '../support/fake-clock.ts';

/** Sets the title, clears the screen with C0 and with C1, hides text, writes from right to left, forges a line. */
const HOSTILE = 'a\u001b]0;owned\u0007\u001b[2J\u009b8m\u202egnp.\u2028b\u0000';
const RAW = /(?![\n\t])[\p{Cc}\u202a-\u202e\u2028\u2029]/u;

function expectPlain(text: string): void {
  expect(text).toContain('u202e');
  expect(text).not.toMatch(RAW);
}

describe('control characters of tenants', () => {
  test('are escaped in logs of JSON', async () => {
    const lines: string[] = [];
    const destination = { write: (line: string) => void lines.push(line) };
    const logger = await createLogger({ level: 'info', format: 'json', destination });
    const fields = { note: HOSTILE, list: [{ [HOSTILE]: HOSTILE }], err: new Error(HOSTILE) };
    logger.info(fields, 'synced');
    expectPlain(lines.join(''));
    expect(JSON.parse(lines[0] ?? '')).toMatchObject({ msg: 'synced', level: 'info' });
    expectPlain(textAt(JSON.parse(lines[0] ?? '') as JsonObject, 'err', 'stack')); // a line of the log
  });

  test('are escaped in logs for a terminal', () => {
    const file = join(import.meta.dirname, '../../src/base/logger.ts');
    const text = JSON.stringify(HOSTILE);
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
    const recorder = createEventRecorder({
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
    recorder.event(regarding, ENDPOINTS, { type: 'Warning', reason: 'PatchFailed', note: HOSTILE });
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
    demo.info({ key: HOSTILE, outcome: 'created', latencyMs: 1 }, 'synced');
    demo.warn({ key: HOSTILE, error: HOSTILE }, 'failed');
    errors.mockRestore();
    expect(written).toHaveLength(2);
    for (const line of written) expectPlain(line);
  });

  test('are escaped in tables, differences and errors of commands', async () => {
    expectPlain(formatTable([['NAME'], [HOSTILE]]));
    const after = { metadata: { name: 'web', namespace: 'default', annotations: { note: HOSTILE } } };
    const change = { cluster: 'host', resource: ENDPOINTS, reason: 'x', before: undefined, after } as const;
    expectPlain(formatChange(change as never, false, paintFor({ isTTY: false } as never)) ?? '');
    const written: string[] = [];
    const errors = vi
      .spyOn(process.stderr, 'write')
      .mockImplementation((line) => written.push(String(line)) > 0);
    await guarded(() => Promise.reject(new TerminalError(HOSTILE)));
    await guarded(() => Promise.reject(failure(422, 'Invalid', HOSTILE)));
    errors.mockRestore();
    expect(written).toHaveLength(2);
    for (const line of written) expectPlain(line);
  });

  test('make no name of an object', () => {
    const item = { metadata: { name: HOSTILE, namespace: 'default' } };
    expect(problemOf(item)).toContain('metadata.name');
    expect(() => asList({ metadata: {}, items: [item] }, ENDPOINTS)).toThrow('metadata.name');
  });
});

describe('control characters of callers of the key API', () => {
  test('are escaped in messages', async () => {
    await using api = await startKeyServer();
    const asked: [string, string, object?][] = [
      ['POST', KEYS_PATH, { metadata: { name: HOSTILE }, spec: MINIMAL }],
      ['POST', KEYS_PATH, { metadata: { name: 'k' }, spec: { ...MINIMAL, type: HOSTILE } }],
      [
        'POST',
        KEYS_PATH,
        { metadata: { name: 'k' }, spec: { ...MINIMAL, scope: { rules: [{ cluster: HOSTILE }] } } },
      ],
      ['POST', KEYS_PATH, { metadata: { name: 'k' }, spec: { ...MINIMAL, [HOSTILE]: 1 } }],
      ['GET', `${KEYS_PATH}/${encodeURIComponent(HOSTILE)}`],
      ['GET', `${KEYS_PATH}?labelSelector=${encodeURIComponent(HOSTILE)}`],
      ['GET', `${KEYS_PATH}?fieldSelector=${encodeURIComponent(HOSTILE)}`],
      ['GET', `${KEYS_PATH}?limit=${encodeURIComponent(HOSTILE)}`],
      ['GET', `/apis/${encodeURIComponent(HOSTILE)}/v1/x`],
    ];
    for (const [method, path, body] of asked) {
      const { json } = await api.send(method, path, body as never);
      const texts = [json?.['message'], ...messagesOf(json?.['details'])].map(String);
      expect([path, texts.filter((text) => RAW.test(text))]).toEqual([path, []]);
    }
  });

  test('are escaped in tables', async () => {
    await using api = await startKeyServer();
    await api.create('k1', { displayName: `x${HOSTILE}` });
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
