/** `adopt`: the virtual cluster is another one than that of the copies on the host, and the right one. The daemon then deletes what it lacks. */

import type { Command } from 'commander';
import { TerminalError } from '../../base/errors.ts';
import { keyOf } from '../../kube/object.ts';
import { addConfigOptions } from '../config-options.ts';
import type { ExitWith } from '../output/terminal.ts';
import type { LiveSync } from '../../syncer/rehearsal/live-sync.ts';
import { withConnection } from './hosted.ts';

export function define(command: Command, exitWith: ExitWith): void {
  addConfigOptions(command);
  command.action(() => exitWith(() => withConnection(command, adopt)));
}

async function adopt(sync: LiveSync): Promise<number> {
  const lease = await sync.adopt();
  if (lease === undefined)
    throw new TerminalError(
      'the namespace kube-system of the virtual cluster may not be read, which tells it from others; grant the right that ' +
        '"endpoint-syncer rbac" prints, or start "run" once with --adopt',
    );
  process.stdout.write(
    `Lease "${keyOf(lease)}" says that the copies are of this virtual cluster; a running daemon deletes those without an ` +
      'object within a minute\n',
  );
  return 0;
}
