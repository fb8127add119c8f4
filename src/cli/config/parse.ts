/** Parses a file of both products and the command line into their configurations, or the list of all problems. Pure. */

import { checkManagement, rightsOnHost, type ManagementConfig } from '../../access-keys/config.ts';
import type { ConfigProblem } from '../../base/errors.ts';
import { Fields, type Finding, formatPath } from '../../config-file/finding.ts';
import { placeholderWarnings } from '../../config-file/mistakes.ts';
import {
  problemsOfLayers,
  readLayers,
  type ConfigText,
  type VclusterText,
} from '../../shared-config/layers.ts';
import { rulesAcross } from '../../shared-config/shared.ts';
import type { Config } from '../../syncer/config/config.ts';
import { checkSync, NOT_INHERITED, type SyncOptions } from '../../syncer/config/parse.ts';
import { overridesOfCommandLine, type CommandLine } from './command-line.ts';
import { configSchema } from './schema.ts';

export interface ParseOptions extends CommandLine, SyncOptions {}

export interface ParseResult {
  readonly config?: Config;
  /** Of the key and token API. Present if `config` is. */
  readonly management?: ManagementConfig;
  /** In the order of the file; problems without a position come first. */
  readonly problems: readonly ConfigProblem[];
  /** The position of a finding by a later check. */
  readonly locate: (finding: Finding) => ConfigProblem;
}

/** Reads one configuration file, on top of vCluster's own values file if there is one. */
export function parseConfig(
  source: ConfigText,
  options: ParseOptions,
  vclusterText?: VclusterText,
): ParseResult {
  const read = { sections: configSchema, notInherited: NOT_INHERITED };
  const layers = readLayers(source, overridesOfCommandLine(options), read, vclusterText);
  const { locate, own, merged } = layers;
  if (!layers.isReadable) return { problems: layers.problems, locate };
  const sync = checkSync(layers, options);
  const { section, findings } = checkManagement(merged, source.folder);
  const ofProducts = [...sync.findings, ...findings];
  const problems = problemsOfLayers(layers, [
    ...ofProducts,
    ...withoutReported(rulesAcross(new Fields(merged)), ofProducts),
    ...placeholderWarnings(new Fields(own), 'managementApi'),
  ]);
  const isInvalid = problems.some(({ severity }) => severity === 'error');
  if (isInvalid || sync.config === undefined || section === undefined) return { problems, locate };
  const config = { ...sync.config, companion: companionOf(section) };
  return { config, management: { ...section, host: config.host }, problems, locate };
}

/** One error for each place is enough, such as for a mapping that no copy can follow. */
function withoutReported(findings: readonly Finding[], others: readonly Finding[]): readonly Finding[] {
  const errors = others.filter(({ severity }) => severity === 'error').map(({ path }) => formatPath(path));
  return findings.filter(({ path }) => !errors.includes(formatPath(path)));
}

function companionOf(section: Omit<ManagementConfig, 'host'>): Config['companion'] {
  return {
    isServed: section.enabled,
    rights: rightsOnHost(section),
    sections: { managementApi: section },
  };
}
