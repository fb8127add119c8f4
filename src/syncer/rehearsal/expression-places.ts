/** Where the daemon evaluates each expression of a configuration, for `validate --place`. */

import type { Config } from '../config/config.ts';
import { warningAtValue, type Finding } from '../../config-file/finding.ts';
import { SYNCED_KEYS } from '../kinds/synced-kinds.ts';
import { compilePatches } from '../patch/compile.ts';
import { placeIn, type Place } from '../../expressions/places.ts';

export interface PlaceFinding {
  readonly place: Place;
  /** Where and why, as text. */
  readonly finding: Finding;
}

/** Of each expression and filter, in the order of the configuration. */
export function expressionPlaces({ sync, sandbox }: Config): PlaceFinding[] {
  return SYNCED_KEYS.flatMap((key) =>
    compilePatches(sync[key].patches).patches.flatMap(({ index, actions, filters }) => {
      const patch = ['sync', 'toHost', key, 'patches', index];
      const { toHost, toVirtual } = actions;
      return [
        ...filters.map(({ program, offset }) => ({ key: 'path', program, offset })),
        ...(toHost.kind === 'evaluate' ? [{ key: 'expression', program: toHost.program, offset: 0 }] : []),
        ...(toVirtual.kind === 'evaluate'
          ? [{ key: 'reverseExpression', program: toVirtual.program, offset: 0 }]
          : []),
      ].map(({ key, program, offset }) => {
        const { place, message, at } = placeIn(program, sandbox.localEvaluation);
        return { place, finding: warningAtValue([...patch, key], message, offset + at) };
      });
    }),
  );
}
