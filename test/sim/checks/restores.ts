/** A daemon takes a server for restored from a backup only if it was: every object is listed again, and replaces what is newer. */

import { silentLogger, type Logger } from '../../../src/base/logger.ts';

const ALARM = /^the server was restored from a backup/u;

/** A logger that reports alarms. `isPossible`: the server was restored, or has answered with an old list. */
export function falseAlarms(
  isPossible: (cluster: unknown) => boolean,
  violation: (message: string) => void,
): Logger {
  const logger: Logger = {
    ...silentLogger,
    warn({ cluster, resource }, message) {
      if (ALARM.test(message) && !isPossible(cluster))
        violation(`the ${String(cluster)} server is taken for restored, by its list of ${String(resource)}`);
    },
    child: () => logger,
  };
  return logger;
}
