/** The source of the child. It is passed as text instead of a file, because a Node process that strips types is 20 MiB larger and starts
 * 50 ms later, and because the child then needs to read no file except the addon.
 */

import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname } from 'node:path';
import { sourceExtension } from '../../base/source-extension.ts';
import type { NamespaceMode, SandboxLimits } from '../../config/types.ts';
import type { NamingRules, SetupMessage } from './protocol.ts';
import { stripTypes } from './strip-types.ts';
import type { VclusterContext } from './types.ts';

export interface GuestSource {
  /** Source of the child's program. */
  readonly main: string;
  /** The only file that the child may read. */
  readonly addon: string;
  /**
   * Backtracks of one match before V8 runs the regular expression in its breadth-first engine, whose time is linear in the text.
   * Regular expressions with the flags i, u or v, back-references or large counted repetitions always use the backtracking engine.
   */
  readonly regexpBacktracksMax: number;
  readonly setup: SetupMessage;
}

/** Share of its time limit that an expression must have used as processor time to count as timed out. On a busy machine, an expression could
 * time out without having run otherwise. The guest measures its own processor time; the watchdog reads it from the system.
 */
export const PROCESSOR_SHARE = 0.7;
/** After this multiple of its limit, an expression counts as timed out in any case. */
export const STARVED_FACTOR = 10;

/** The modules of the realm. */
const REALM_FILES = ['allow-list', 'harden', 'plain-json', 'errors', 'evaluator', 'globals', 'realm'];
const MIB = 1024 * 1024;
const HEAP_MIB_MIN = 16;
const SHARE_MS_MAX = 20;
/** Corresponds to at most a millisecond. */
const REGEXP_BACKTRACKS_MAX = 50_000;

export function readGuestSource(
  vcluster: VclusterContext,
  namespaces: NamespaceMode,
  limits: SandboxLimits,
): GuestSource {
  const addon = addonPath();
  const { name, namespace, config } = vcluster;
  // V8 accepts about thirty characters.
  const collectorName = `gc${randomBytes(12).toString('hex')}`;
  const [main = '', ...modules] = readScripts(['main', ...REALM_FILES]);
  const specifierOf = (file: string): string => `./${file}.${sourceExtension(import.meta.url)}`;
  return {
    // TypeScript marks a module without imports, but the program is a script.
    main: main.replace(/^export \{\};$/m, ''),
    addon,
    regexpBacktracksMax: REGEXP_BACKTRACKS_MAX,
    setup: {
      addon,
      collectorName,
      modules: Object.fromEntries(REALM_FILES.map((file, i) => [specifierOf(file), modules[i] ?? ''])),
      entry: specifierOf('realm'),
      settings: {
        collectorName,
        shareMs: Math.min(SHARE_MS_MAX, limits.expressionTimeoutMs / 4),
        vcluster: { name, namespace, config },
        names: namingRules(vcluster, namespaces),
      },
      // The rest of the process's memory limit is for messages.
      heapMiB: Math.max(HEAP_MIB_MIN, Math.floor(limits.memoryBytes / MIB / 2)),
      expressionTimeoutMs: limits.expressionTimeoutMs,
      processorShare: PROCESSOR_SHARE,
      starvedFactor: STARVED_FACTOR,
      batchTimeoutMs: limits.batchTimeoutMs,
    },
  };
}

/** Reads files of the guest, without types. */
function readScripts(files: readonly string[]): string[] {
  const extension = sourceExtension(import.meta.url);
  const texts = files.map((file) =>
    readFileSync(new URL(`./guest/${file}.${extension}`, import.meta.url), 'utf8'),
  );
  return extension === 'ts' ? stripTypes(texts) : texts;
}

/** Finds the prebuilt addon for this Node version as isolated-vm does. */
function addonPath(): string {
  const here = createRequire(import.meta.url);
  const folder = dirname(here.resolve('isolated-vm/package.json'));
  const find = createRequire(`${folder}/package.json`)('node-gyp-build') as { path(folder: string): string };
  return find.path(folder);
}

function namingRules({ name, namespace }: VclusterContext, mode: NamespaceMode): NamingRules {
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
