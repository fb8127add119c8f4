/** The user of a connection: logged, and warned of if it may do everything and need not. */

import { expect, test } from 'vitest';
import { reportOwnUser } from '../../src/syncer/own-user.ts';
import { failure } from '../../src/kube/status-error.ts';
import type { JsonValue } from '../../src/base/json.ts';
import { silentLogger, type LogFields } from '../../src/base/logger.ts';

interface Case {
  readonly isAdmin: boolean;
  readonly isExpected?: boolean;
  readonly isUnknown?: boolean;
}

const KNOWN = { cluster: 'host', user: 'admin' };

test.each<[string, Case, readonly unknown[]]>([
  [
    'an administrator',
    { isAdmin: true },
    [
      ['info', KNOWN],
      ['warn', KNOWN],
    ],
  ],
  ['an administrator, as is expected', { isAdmin: true, isExpected: true }, [['info', KNOWN]]],
  ['another user', { isAdmin: false }, [['info', KNOWN]]],
  ['of an older server', { isAdmin: true, isUnknown: true }, []],
])('%s', async (_, { isAdmin, isUnknown = false, isExpected = false }, lines) => {
  const logged: [string, LogFields][] = [];
  const logger = {
    ...silentLogger,
    info: (fields: LogFields) => void logged.push(['info', fields]),
    warn: (fields: LogFields) => void logged.push(['warn', fields]),
  };
  const request = async (_method: string, path: string): Promise<JsonValue> => {
    if (!path.endsWith('/selfsubjectreviews')) return { status: { allowed: isAdmin } };
    if (isUnknown) throw failure(404, 'NotFound', 'there is no such resource');
    return { status: { userInfo: { username: 'admin' } } };
  };
  await reportOwnUser({ cluster: 'host', request }, { logger, isExpected });
  expect(logged).toEqual(lines);
});
