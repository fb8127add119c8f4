/** The differences between the output of commands and their page. */

import { isAsDocumented, settled } from './output.ts';
import type { PlayedCommand } from './session.ts';

export interface PageDifference {
  readonly command: string;
  readonly exitCode: number;
  readonly printed: string;
  readonly documented: string;
}

/** Empty when every command printed what the page shows, and failed only where the page shows an error. */
export function differences(played: readonly PlayedCommand[]): PageDifference[] {
  return played
    .filter(({ kind, output, printed, exitCode }) => {
      const hasFailed = exitCode !== 0 && kind !== 'interrupted';
      const isErrorShown = /^error\b/imu.test(output);
      return hasFailed !== isErrorShown || !isAsDocumented(printed, output);
    })
    .map(({ command, exitCode, printed, output }) => ({
      command,
      exitCode,
      printed: settled(printed),
      documented: settled(output),
    }));
}
