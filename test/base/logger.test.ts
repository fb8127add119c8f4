/** The rate of a log. */

import { expect, test } from 'vitest';
import { createLogger, limitedLogger, type LogFields, type Logger } from '../../src/base/logger.ts';
import { FakeClock } from '../support/fake-clock.ts';

function recorded(lines: string[], prefix = ''): Logger {
  const line =
    (level: string) =>
    (fields: LogFields, message: string): void =>
      void lines.push(`${prefix}${level} ${message} ${JSON.stringify(fields)}`);
  return {
    trace: line('trace'),
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
  logger.trace({}, 'all');
  expect(lines).toEqual(['info synced {}', 'warn refused {}', 'debug a detail {}', 'trace all {}']);
});

test.each([
  ['trace', [String.raw`"state":{"at":"4\\u001b[0m"}`]],
  ['debug', []],
] as const)(
  'at level %s, what has a form for JSON is printed in that form, as plain text',
  async (level, lines) => {
    const written: string[] = [];
    const destination = { write: (line: string) => void written.push(line) };
    const logger = await createLogger({ level, format: 'json', destination });
    let printed = 0;
    logger.trace(
      {
        state: {
          secret: 's',
          toJSON: () => {
            printed += 1;
            return { at: '4\u001b[0m' };
          },
        },
      },
      'state',
    );
    expect([written.map((line) => /"state":\{[^}]*\}/.exec(line)?.[0]), printed]).toEqual([
      lines,
      lines.length,
    ]);
  },
);
