/** `adopt`: the virtual cluster is another one than that of the copies on the host, and the right one. The daemon then deletes what it lacks. */

import type { Command } from 'commander';
import { TerminalError } from '../../base/errors.ts';
import { LEASES, leaseWith } from '../../kube/lease.ts';
import { keyOf, NAMESPACES } from '../../kube/object.ts';
import { ignoreNotFound } from '../../kube/status-error.ts';
import { leaseName } from '../../syncer/leadership.ts';
import { FIELD_MANAGER } from '../../syncer/reconcile/writer.ts';
import { ADOPTED, KUBE_SYSTEM, readIfAllowed } from '../../syncer/virtual-identity.ts';
import { addConfigOptions } from '../config-options.ts';
import type { ExitWith } from '../output/terminal.ts';
import { withConnection } from './hosted.ts';
import { reaching } from '../../syncer/rehearsal/requests.ts';
import type { Connection } from '../../syncer/rehearsal/connection.ts';

export function define(command: Command, exitWith: ExitWith): void {
  addConfigOptions(command);
  command.action(() => exitWith(() => withConnection(command, adopt)));
}

async function adopt({ config, clusters }: Connection): Promise<number> {
  const { virtual, host } = clusters;
  const namespace = await reaching('virtual', () => readIfAllowed(virtual, NAMESPACES, KUBE_SYSTEM));
  const uid = namespace?.metadata.uid;
  if (uid === undefined)
    throw new TerminalError(
      'the namespace kube-system of the virtual cluster may not be read, which tells it from others; grant the right that ' +
        '"endpoint-syncer rbac" prints, or start "run" once with --adopt',
    );
  const place = { namespace: config.host.namespace, name: leaseName(config.name) };
  const lease = await reaching('host', () => ignoreNotFound(host.get(LEASES, place)));
  const wanted = leaseWith(lease, place, { [ADOPTED]: uid });
  const options = { fieldManager: FIELD_MANAGER };
  await reaching('host', () =>
    lease === undefined ? host.create(LEASES, wanted, options) : host.update(LEASES, wanted, options),
  );
  process.stdout.write(
    `Lease "${keyOf(place)}" says that the copies are of this virtual cluster; a running daemon deletes those without an ` +
      'object within a minute\n',
  );
  return 0;
}
