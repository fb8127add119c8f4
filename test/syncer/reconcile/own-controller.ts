/** A controller of Endpoints whose reconciles a test gives. */

import { systemClock } from '../../../src/base/clock.ts';
import { Controller, type ControllerOptions } from '../../../src/syncer/reconcile/controller.ts';
import { kindWorld } from '../references/kind-world.ts';

export function ownController(
  options: Pick<ControllerOptions, 'reconcile'> & Partial<ControllerOptions>,
): Controller {
  return new Controller({
    ...kindWorld().environment,
    clock: systemClock,
    name: 'endpoints',
    identify: (key) => ({ group: '', kind: 'Endpoints', key }),
    stateOf: () => undefined,
    warn: () => undefined,
    ...options,
  });
}
