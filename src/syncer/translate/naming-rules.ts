/** How expressions translate names: the namespace mode as plain data, which a sandbox process gets. */

import type { NamingRules, VclusterContext } from '../../expressions/types.ts';
import type { NamespaceMode } from './types.ts';

export function namingRules({ name, namespace }: VclusterContext, mode: NamespaceMode): NamingRules {
  const isMapped = mode.kind === 'mappings';
  const entries = isMapped ? Object.entries(mode.byName) : [];
  const resolve = (text: string): string => text.replaceAll('${name}', () => name);
  return {
    vcluster: name,
    hostNamespace: namespace,
    mode: mode.kind,
    byName: Object.fromEntries(entries.map(([virtual, host]) => [resolve(virtual), resolve(host)])),
    mappingsOnly: isMapped && mode.mappingsOnly,
  };
}
