/** The option `--kind` compared with the configuration. */

import type { Config } from '../../config/types.ts';
import { kindPolicy } from '../../syncer/references/kinds/referenced-kind.ts';
import { knownKind, pluralOf, similarKind } from './kind-scope.ts';

/** The configuration syncs this kind, or a patch references it. */
export function isNamedBy({ sync }: Config, kind: string): boolean {
  const isReferenced = kindPolicy(sync).named.some((one) => one.kind === kind);
  return isReferenced || [...sync.enabledCustomResources].some((key) => key.startsWith(`${pluralOf(kind)}.`));
}

/** True after an error about a kind that no object of this configuration can have: most likely a typo. */
export function reportUnknownKind(config: Config, text: string | undefined): boolean {
  if (text === undefined || kindPolicy(config.sync).isOpen) return false;
  const { kind, scope } = knownKind(text);
  if (scope !== 'unknown' || isNamedBy(config, kind)) return false;
  const hint = similarKind(kind) || '; neither is it synced, nor does a patch reference it';
  process.stderr.write(`error: --kind: unknown kind "${kind}"${hint}\n`);
  return true;
}
