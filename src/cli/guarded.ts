/** What people must act on becomes a line on standard error and an exit code; all else is an error of ours, and is thrown on. */

import { ConfigError, TerminalError } from '../kube/errors.ts';
import { StatusError } from '../kube/status-error.ts';
import { StoreError } from '../store/types.ts';
import { reportConfigError } from './config-report.ts';

/** `adviceFor` may add to what the error says. */
export async function guarded(
  work: () => number | Promise<number>,
  adviceFor: (error: Error) => string = () => '',
): Promise<number> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof ConfigError) return reportConfigError(error);
    if (!isForPeople(error)) throw error;
    process.stderr.write(`error: ${error.message}${adviceFor(error)}\n`);
    return 1;
  }
}

function isForPeople(error: unknown): error is TerminalError | StatusError | StoreError {
  return error instanceof TerminalError || error instanceof StatusError || error instanceof StoreError;
}
