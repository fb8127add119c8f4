/** The rate of a log. */

import { expect, test } from 'vitest';
import { limitedLogger, type LogFields, type Logger } from '../../src/base/logger.ts';
import { FakeClock } from '../support/fake-clock.ts';

function recorded(lines: string[], prefix = ''): Logger {
  const line =
    (level: string) =>
    (fields: LogFields, message: string): void =>
      void lines.push(`${prefix}${level} ${message} ${JSON.stringify(fields)}`);
  return {
    debug: line('debug'),
    info: line('info'),
    warn: line('warn'),
    error: line('error'),
    child: () => recorded(lines, 'child '),
  };
}

test('lines above the rate are left out, of all children together, and how many is said before the next', () => {
  const [lines, clock]: [string[], FakeClock] = [[], new FakeClock()];
  const logger = limitedLogger(recorded(lines), { burst: 2, perSecond: 1 }, clock);
  for (let at = 0; at < 4; at++) logger.info({ at }, 'synced');
  logger.child({}).info({}, 'of a child');
  expect(lines).toEqual(['info synced {"at":0}', 'info synced {"at":1}']);
  clock.advance(1000);
  logger.info({ at: 5 }, 'synced');
  expect(lines.slice(2)).toEqual(['info lines of the log were left out {"lines":3}', 'info synced {"at":5}']);
});

test('warnings and errors are not left out because of other lines', () => {
  const [lines, clock]: [string[], FakeClock] = [[], new FakeClock()];
  const logger = limitedLogger(recorded(lines), { burst: 1, perSecond: 1 }, clock);
  for (let at = 0; at < 4; at++) logger.info({}, 'synced');
  logger.warn({}, 'refused');
  logger.error({}, 'failed');
  logger.debug({}, 'a detail');
  expect(lines).toEqual(['info synced {}', 'warn refused {}', 'debug a detail {}']);
});
