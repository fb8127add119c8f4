/** Lines of the log that would be repeated for as long as an outage lasts. */

import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { OutageLog } from '../../src/base/outage-log.ts';
import { silentLogger, type Logger } from '../../src/base/logger.ts';

test('each outage is one line; its repetitions are of level debug', () => {
  const lines: unknown[] = [];
  const log = (level: string) => (fields: object, message: string) =>
    void lines.push([level, fields, message]);
  const logger: Logger = { ...silentLogger, debug: log('debug'), warn: log('warn'), error: log('error') };
  const outage = new OutageLog(logger, 'gone');
  outage.failed({ attempt: 1 });
  outage.failed({ attempt: 2 });
  outage.ended();
  outage.ended();
  outage.failed({ attempt: 3 });
  new OutageLog(logger, 'lost', 'error').failed({});
  expect(lines).toEqual([
    ['warn', { attempt: 1 }, 'gone'],
    ['debug', { attempt: 2 }, 'gone'],
    ['warn', { attempt: 3 }, 'gone'],
    ['error', {}, 'lost'],
  ]);
});

/** What says itself how often it is repeated. */
const OWN_RULE: Readonly<Record<string, string>> = {
  'syncer/clusters.ts': 'at the 1st, 2nd, 4th, … attempt: nothing else says that the start waits',
  'fleet/removals.ts': 'at the 1st, 2nd, 4th, … attempt of a namespace',
  'kube/event-recorder.ts': 'once, until an Event is accepted',
  'access-keys/tokens/key-ring.ts': 'once an hour',
  'access-keys/keys/expiry-events.ts': 'once an hour',
};

test('every line about something that is tried again is one of an outage, or has a rule of its own', () => {
  const root = join(import.meta.dirname, '..', '..', 'src');
  const repeated = globSync('**/*.ts', { cwd: root }).flatMap((file) => {
    const text = readFileSync(join(root, file), 'utf8');
    const calls = text.matchAll(/logger\.(?:warn|error)\((?:[^()]|\([^()]*\))*\)/gu);
    const isRepeated = [...calls].some(([call]) => /retrying|retried|not respond yet/u.test(call));
    return isRepeated ? [file.replaceAll('\\', '/')] : [];
  });
  expect(repeated.filter((file) => OWN_RULE[file] === undefined)).toEqual([]);
});
