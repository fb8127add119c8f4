/** What the demo shows of the daemon's log. */

import { describe, expect, test, vi } from 'vitest';
import { ActivityLogger, type ActivityEntry } from '../../src/showcase/demo-activity.ts';
import type { LogFields, Logger } from '../../src/base/logger.ts';

type Level = 'debug' | 'info' | 'warn' | 'error';

interface Shown {
  readonly entries: ActivityEntry[];
  /** Without their time. */
  readonly lines: string[];
  readonly errors: string[];
  readonly logger: ActivityLogger;
}

/** What is shown after these calls of the logger. */
function shownAfter(...calls: [Level, LogFields, string][]): Shown {
  const [entries, lines, errors]: [ActivityEntry[], string[], string[]] = [[], [], []];
  const withoutTime = (line: string): string => line.replace(/^\S+ +/u, '');
  const stderr = vi
    .spyOn(process.stderr, 'write')
    .mockImplementation((line) => errors.push(withoutTime(String(line))) > 0);
  const logger = new ActivityLogger(
    (line) => void lines.push(withoutTime(line)),
    (entry) => void entries.push(entry),
  );
  try {
    const daemon: Logger = logger.child();
    for (const [level, fields, message] of calls) daemon[level](fields, message);
  } finally {
    stderr.mockRestore();
  }
  return { entries, lines, errors, logger };
}

describe('a sync', () => {
  test.each<[string, LogFields, id: string, what: string]>([
    ['to the host', { key: 'shop/db', outcome: 'created' }, 'Endpoints shop/db', 'host created'],
    [
      'back',
      { key: 'shop/db', outcome: 'updated', reason: 'changed on the host' },
      'Endpoints shop/db',
      'virtual updated',
    ],
    [
      'of an EndpointSlice',
      { key: 'shop/db-1', controller: 'endpointslices', outcome: 'deleted' },
      'EndpointSlice shop/db-1',
      'host deleted',
    ],
    [
      'of a Service',
      { key: 'shop/db', controller: 'services', outcome: 'rewritten' },
      'Service shop/db',
      'host rewritten',
    ],
    [
      'of a reference',
      { key: 'v1 ConfigMap shop/settings', controller: 'references', outcome: 'created' },
      'ConfigMap shop/settings',
      'host created',
    ],
  ])('%s is a line and an entry', (_, fields, id, what) => {
    const { entries, lines } = shownAfter(['info', { latencyMs: 1.25, ...fields }, 'synced']);
    expect(entries).toEqual([{ id, state: 'synced', what, latencyMs: 1.25 }]);
    expect(lines).toHaveLength(1);
    expect(lines[0]?.replaceAll(/ +/gu, ' ')).toMatch(new RegExp(`${what} 1\\.3 ms$`, 'u'));
  });

  test('has a latency by key, the one of the last sync', () => {
    const { logger } = shownAfter(
      ['info', { key: 'shop/db', outcome: 'created', latencyMs: 9 }, 'synced'],
      ['debug', { key: 'shop/db', outcome: 'updated', latencyMs: 2 }, 'synced'],
      ['info', { key: 'shop/db', controller: 'services', outcome: 'updated', latencyMs: 7 }, 'synced'],
    );
    expect(['shop/db', 'Service shop/db', 'shop/web'].map((key) => logger.latencyMs(key))).toEqual([
      2,
      7,
      undefined,
    ]);
  });
});

test.each<[LogFields, state: string, what: string]>([
  [{ key: 'shop/db', outcome: 'ignored', reason: 'hasSelector' }, 'skipped', 'hasSelector'],
  [{ key: 'shop/db', outcome: 'unchanged' }, 'unchanged', 'unchanged'],
])('a reconcile without a write is an entry and no line: %j', (fields, state, what) => {
  const { entries, lines } = shownAfter(['debug', fields, 'reconciled']);
  expect(entries).toEqual([{ id: 'Endpoints shop/db', state, what, latencyMs: undefined }]);
  expect(lines).toEqual([]);
});

test('messages that are about no object are no entries, and only a reload is a line', () => {
  const { entries, lines, errors } = shownAfter(
    ['debug', {}, 'reconciled'],
    ['info', { cluster: 'host' }, 'connected'],
    ['info', {}, 'configuration reloaded'],
    ['error', { err: new Error('port in use') }, 'cannot listen'],
  );
  expect({ entries, lines, errors }).toEqual({
    entries: [],
    lines: ['configuration reloaded'],
    errors: ['cannot listen: port in use\n'],
  });
});

test.each<[LogFields, state: string, what: string]>([
  [{ outcome: 'refused', reason: 'NameConflict' }, 'refused', 'another object has the same host name'],
  [{ error: 'no property a', paths: ['metadata.labels.x'] }, 'failed', 'no property a: metadata.labels.x'],
  [{ outcome: 'failed', reason: 'Other', err: new Error('why') }, 'failed', 'why'],
  [{ outcome: 'contested', reason: 'Contested' }, 'contested', 'Contested'],
  [{ outcome: 'contested', reason: 'Contested', note: 'x wins' }, 'contested', 'x wins'],
  [{ outcome: 'pending', reason: 'deleted' }, 'pending', 'deleted'],
  [{ outcome: 'terminating', reason: 'Terminating' }, 'terminating', 'Terminating'],
])(
  'a problem of an object has the state of status, and an error line with all that is known: %j',
  (fields, state, what) => {
    const { entries, errors } = shownAfter(['warn', { key: 'shop/db', ...fields }, 'patch failed']);
    expect(entries).toEqual([{ id: 'Endpoints shop/db', state, what, latencyMs: undefined }]);
    expect(errors).toEqual([expect.stringMatching(/^shop\/db {2}patch failed: /u)]);
  },
);

test('a text with a line break begins no line of its own', () => {
  const { errors } = shownAfter([
    'warn',
    { key: 'shop/db', error: 'x\n10:00:00  shop/db  host deleted\r\u2028\u001b[2K', reason: 'PatchFailed' },
    'not synced',
  ]);
  const lines = errors
    .join('')
    .trimEnd()
    .split(/[\n\r\u2028]/u);
  expect(lines).toHaveLength(2);
  expect(lines[1]).toMatch(/^ {8,}10:00:00/u);
});
