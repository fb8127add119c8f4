/** Errors that the user can act on become a line on standard error and an exit code; every other error is a defect, and is thrown. */

import { ConfigError, TerminalError } from '../../base/errors.ts';
import { StatusError } from '../../kube/status-error.ts';
import { StoreError } from '../../apiserver/storage/store.ts';
import { reportConfigError } from '../configuration/config-report.ts';

/** `adviceFor` may add to the message; `failure` is the exit code where 1 means something else. */
export async function guarded(
  work: () => number | Promise<number>,
  adviceFor: (error: Error) => string = () => '',
  failure = 1,
): Promise<number> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof ConfigError) return reportConfigError(error);
    if (!isActionable(error)) throw error;
    process.stderr.write(`error: ${error.message}${adviceFor(error)}\n`);
    return failure;
  }
}

function isActionable(error: unknown): error is TerminalError | StatusError | StoreError {
  return error instanceof TerminalError || error instanceof StatusError || error instanceof StoreError;
}
