/** The audit log: its lines, its files, and failures to write it. */

import { auditEvent, type RequestRecord } from '../../../src/apiserver/request/request-info.ts';
import { mkdtemp, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { JsonObject } from '../../../src/base/json.ts';
import { userNamed } from '../../../src/apiserver/user.ts';
import { EXTRA } from '../../../src/access-keys/identity.ts';
import {
  AuditLog,
  AuditTrail,
  QUEUE_LENGTH_MAX,
  REFUSED_RATE,
  type AuditLogOptions,
} from '../../../src/access-keys/serving/audit-log.ts';
import { silentLogger, type Logger } from '../../../src/base/logger.ts';
import { FakeClock } from '../../support/fake-clock.ts';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'audit-'));
});
afterEach(() => rm(folder, { recursive: true }));

const RECORD: RequestRecord = {
  id: '6b2f',
  url: '/apis/management.platform.sh/v1/ownedaccesskeys/ci?dryRun=All',
  address: '192.0.2.1',
  userAgent: 'kubectl/v1.36',
  receivedMs: Date.UTC(2026, 0, 1),
  verb: 'patch',
  path: {
    group: 'management.platform.sh',
    version: 'v1',
    resource: 'ownedaccesskeys',
    namespace: '',
    name: 'ci',
    subresource: 'status',
  },
  user: { ...userNamed('ann', ['dev']), extra: { [EXTRA.keyUid]: ['u1'], [EXTRA.scope]: ['{"long":1}'] } },
  decision: 'allow',
  reason: 'its own key',
  writtenName: '',
};

function auditLog(more: Partial<AuditLogOptions> = {}): AuditLog {
  return new AuditLog({
    path: join(folder, 'audit.log'),
    clock: new FakeClock(),
    logger: silentLogger,
    fileBytesMax: 1_000_000,
    filesKept: 3,
    ...more,
  });
}

function recordMany(log: AuditLog, count: number): void {
  for (let n = 0; n < count; n++)
    log.record(auditEvent({ ...RECORD, id: String(n) }, 200, RECORD.receivedMs));
}

async function lines(name = 'audit.log'): Promise<Record<string, unknown>[]> {
  const text = await readFile(join(folder, name), 'utf8');
  return text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>); // our own lines
}

describe('a line', () => {
  test('is an event of audit.k8s.io, without the scope', async () => {
    await using log = auditLog();
    log.record(auditEvent(RECORD, 200, RECORD.receivedMs + 5));
    await log.flushed();
    expect(await lines()).toEqual([
      {
        kind: 'Event',
        apiVersion: 'audit.k8s.io/v1',
        level: 'Metadata',
        auditID: '6b2f',
        stage: 'ResponseComplete',
        requestURI: RECORD.url,
        verb: 'patch',
        user: { username: 'ann', groups: ['dev'], extra: { [EXTRA.keyUid]: ['u1'] } },
        sourceIPs: ['192.0.2.1'],
        userAgent: 'kubectl/v1.36',
        objectRef: {
          resource: 'ownedaccesskeys',
          name: 'ci',
          apiGroup: 'management.platform.sh',
          apiVersion: 'v1',
          subresource: 'status',
        },
        responseStatus: { metadata: {}, code: 200 },
        requestReceivedTimestamp: '2026-01-01T00:00:00.000000Z',
        stageTimestamp: '2026-01-01T00:00:00.005000Z',
        annotations: {
          'authorization.k8s.io/decision': 'allow',
          'authorization.k8s.io/reason': 'its own key',
        },
      },
    ]);
    expect((await stat(join(folder, 'audit.log'))).mode & 0o777).toBe(0o600);
  });

  test('of an unauthenticated request has no user, and of a non-resource request no object', () => {
    const event = auditEvent({ ...RECORD, user: undefined, path: undefined, decision: '' }, 401, 0);
    expect(event.user).toEqual({});
    const written = JSON.stringify(event);
    expect(written.includes('objectRef') || written.includes('annotations')).toBe(false);
  });

  test('of a create has the name that the server gave', () => {
    const path = RECORD.path && { ...RECORD.path, name: '' };
    expect(auditEvent({ ...RECORD, path, writtenName: 'ci-x7k2b' }, 201, 0).objectRef?.name).toBe('ci-x7k2b');
  });

  test('truncates a long user agent', () => {
    expect(auditEvent({ ...RECORD, userAgent: 'x'.repeat(9000) }, 200, 0).userAgent).toHaveLength(1024);
  });
});

test('a long URL, name or reason is cut', () => {
  const long = 'x'.repeat(9000);
  const path = RECORD.path && { ...RECORD.path, name: long, resource: long };
  const event = auditEvent({ ...RECORD, url: `/${long}`, path, reason: long }, 403, 0);
  expect(JSON.stringify(event).length).toBeLessThan(4000);
  expect(event.requestURI).toBe(`/${'x'.repeat(511)}…`);
});

test('a line that a full disk or a crash has cut short does not damage the next one', async () => {
  const path = join(folder, 'audit.log');
  await writeFile(path, '{"kind":"Event"}\n{"kind":"Ev');
  await using log = auditLog();
  recordMany(log, 2);
  await log.flushed();
  const lines = (await readFile(path, 'utf8')).split('\n');
  expect(lines.slice(0, 2)).toEqual(['{"kind":"Event"}', '{"kind":"Ev']);
  expect(lines.slice(2, 4).map((line) => JSON.parse(line) as JsonObject)).toMatchObject([
    { auditID: '0' },
    { auditID: '1' },
  ]);
});

test('a file that another program renames or removes is opened again', async () => {
  await using log = auditLog();
  recordMany(log, 2);
  await log.flushed();
  await rename(join(folder, 'audit.log'), join(folder, 'moved.log'));
  recordMany(log, 3);
  await log.flushed();
  expect([(await lines('moved.log')).length, (await lines()).length]).toEqual([2, 3]);
  await rm(join(folder, 'audit.log'));
  recordMany(log, 1);
  await log.flushed();
  expect((await lines()).length).toBe(1);
});

describe('requests that are refused', () => {
  const trail = (clock = new FakeClock()) =>
    new AuditTrail({ folder, clock, logger: silentLogger, fileBytesMax: 64 * 1024, filesKept: 3 });
  const refused = (n: number, address = '192.0.2.9') => {
    const url = `/apis/management.platform.sh/v1/ownedaccesskeys/${n}`;
    return auditEvent({ ...RECORD, user: undefined, url, address, decision: '' }, 401, 0);
  };

  test('displace no evidence: 52 000 of them leave the deletion by an administrator', async () => {
    await using log = trail();
    log.record(auditEvent({ ...RECORD, verb: 'delete' }, 200, 0));
    for (let n = 0; n < 52_000; n++) log.record(refused(n));
    await log.flushed();
    expect((await readdir(folder)).toSorted()).toEqual(['audit-refused.log', 'audit.log']);
    expect((await lines()).map(({ verb }) => verb)).toEqual(['delete']);
    expect((await lines('audit-refused.log')).length).toBe(REFUSED_RATE.burst);
  });

  test('are counted by address, and those of another address are still seen', async () => {
    const clock = new FakeClock();
    await using log = trail(clock);
    for (let n = 0; n < 150; n++) log.record(refused(n));
    log.record(refused(0, '192.0.2.10'));
    clock.advance(1000);
    log.record(refused(151));
    await log.flushed();
    const [other, last] = (await lines('audit-refused.log')).slice(-2);
    expect(other).toMatchObject({ sourceIPs: ['192.0.2.10'] });
    expect(last).toMatchObject({ annotations: { 'endpoint-syncer/suppressed': '50' } });
  });

  test.each([403, 429])('are also those of a known user: %i', async (code) => {
    await using log = trail();
    log.record(auditEvent(RECORD, code, 0));
    await log.flushed();
    expect(await readdir(folder)).toEqual(['audit-refused.log']);
  });
});

describe('files', () => {
  test('are rotated by size, and a limited number is kept', async () => {
    await using log = auditLog({ fileBytesMax: 2000, filesKept: 2 });
    for (let round = 0; round < 8; round++) {
      recordMany(log, 2);
      await log.flushed();
    }
    expect((await readdir(folder)).sort()).toEqual(['audit.log', 'audit.log.1', 'audit.log.2']);
    for (const name of await readdir(folder))
      expect((await stat(join(folder, name))).size).toBeLessThan(2000);
  });

  test('are continued after a restart', async () => {
    for (let start = 0; start < 2; start++) {
      await using log = auditLog();
      recordMany(log, 3);
    }
    expect(await lines()).toHaveLength(6);
  });

  test('get the buffered lines after a short delay, and at the end', async () => {
    const clock = new FakeClock();
    const log = auditLog({ clock });
    recordMany(log, 1);
    expect(await readdir(folder)).toEqual([]);
    clock.advance(200);
    await log.flushed();
    expect(await lines()).toHaveLength(1);
    recordMany(log, 1);
    await log[Symbol.asyncDispose]();
    expect(await lines()).toHaveLength(2);
    recordMany(log, 1);
    expect(log.dropped).toBe(1);
  });
});

describe('a disk on which writes fail', () => {
  test('does not stop requests: lines are dropped and counted, and the error is logged once', async () => {
    const messages: string[] = [];
    const logger: Logger = {
      ...silentLogger,
      error: (_fields, message) => messages.push(message),
      info: (_fields, message) => messages.push(message),
    };
    const path = join(folder, 'missing', 'audit.log');
    await using log = auditLog({ path, logger });
    recordMany(log, 3);
    await log.flushed();
    recordMany(log, 2);
    await log.flushed();
    expect(log.dropped).toBe(5);
    expect(messages).toEqual(['cannot write the audit log; requests are served without it']);
  });

  test('or are slow: the number of buffered lines is limited', () => {
    const log = auditLog({ path: join(folder, 'missing', 'audit.log') });
    const event = auditEvent(RECORD, 200, RECORD.receivedMs);
    const size = QUEUE_LENGTH_MAX / 8;
    for (let n = 0; n < 20; n++) log.record({ ...event, auditID: 'x'.repeat(size) });
    // One is being written, and eight wait.
    expect(log.dropped).toBe(11);
    return log[Symbol.asyncDispose]();
  });
});
