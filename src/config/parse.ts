/** Parses the text and the overrides into a configuration or the list of all problems. Pure. */

import { resolve } from 'node:path';
import type { ConfigProblem } from '../base/errors.ts';
import { withoutConsequences, type Finding } from './finding.ts';
import { readLayers, type ConfigText, type VclusterText } from './layers.ts';
import { overridesOf } from './overrides.ts';
import { checkPatches, patchesIn } from './rules/patch-rules.ts';
import { checkRules } from './rules/rules.ts';
import { configWarnings, syncedByVcluster, vclusterFindings } from './rules/warnings.ts';
import { vclusterConfigOf, vclusterDefaults } from './schema/defaults.ts';
import { Fields, pathOf } from './schema/fields.ts';
import type { ParsedConfig } from './schema/schema.ts';
import { checkSchema } from './schema/schema-check.ts';
import { toConfig } from './to-config.ts';
import type { Config, ConfigChecks, ConfigFlags, PatchConfig } from './types.ts';

export interface ParseOptions {
  readonly env: NodeJS.ProcessEnv;
  readonly flags: ConfigFlags;
  readonly checks: ConfigChecks;
  /** For commands that need no virtual cluster. */
  readonly isNameOptional?: boolean;
  /** The daemon starts with it, so what vCluster syncs too is an error; else a warning. */
  readonly isStart?: boolean;
  /** Absent: whether the files that the configuration names exist is not checked. */
  readonly fileExists?: (path: string) => boolean;
}

export interface ParseResult {
  /** Undefined when any problem is an error. */
  readonly config?: Config;
  /** In the order of the file; problems without a position come first. */
  readonly problems: readonly ConfigProblem[];
  /** The position of a finding by a later check. */
  readonly locate: (finding: Finding) => ConfigProblem;
}

const PATCH_LISTS = ['sync.toHost.endpoints.patches', 'sync.toHost.endpointSlices.patches'];

/** Reads one configuration file, on top of vCluster's own values file if there is one. */
export function parseConfig(
  source: ConfigText,
  options: ParseOptions,
  vclusterText?: VclusterText,
): ParseResult {
  const layers = readLayers(source, overridesOf(options.env, options.flags), vclusterText);
  if (!layers.isReadable) return { problems: layers.problems, locate: layers.locate };
  const { own, merged, written, vcluster } = layers;
  const defaults = vclusterDefaults();
  const fields = new Fields(merged);
  const { config: parsed, findings } = checkSchema(merged, options.isNameOptional);
  const all = withoutConsequences([
    ...findings,
    ...PATCH_LISTS.flatMap((list) =>
      checkPatches(new Fields(written).value(list), pathOf(list), options.checks),
    ),
    ...checkRules(merged, options.checks),
    ...configWarnings({ merged, own }, defaults, options.fileExists),
    ...(vcluster === undefined ? [] : vclusterFindings(merged, vcluster, options.isStart ?? false)),
  ]);
  const problems = inFileOrder(
    [...layers.problems, ...all.map((finding) => layers.locate(finding))],
    source.file,
  );
  if (parsed === undefined || problems.some((problem) => problem.severity === 'error'))
    return { problems, locate: layers.locate };
  const patchesOf = (kind: string): PatchConfig[] => patchesIn(fields.value(`sync.toHost.${kind}.patches`));
  const patches = { endpoints: patchesOf('endpoints'), endpointSlices: patchesOf('endpointSlices') };
  const isDataDirSet = fields.text('managementApi.dataDir') !== '';
  const resolved = isDataDirSet ? parsed : withDataDirBeside(parsed, source.folder);
  return {
    config: toConfig(
      resolved,
      patches,
      vclusterConfigOf(merged, defaults),
      vcluster && syncedByVcluster(vcluster),
    ),
    problems,
    locate: layers.locate,
  };
}

/** The default is a path of the file, as if the file contained it. */
function withDataDirBeside(parsed: ParsedConfig, folder: string | undefined): ParsedConfig {
  if (folder === undefined) return parsed;
  const { managementApi } = parsed;
  return { ...parsed, managementApi: { ...managementApi, dataDir: resolve(folder, managementApi.dataDir) } };
}

/** Problems without a position first, then the configuration file, then vCluster's. */
export function inFileOrder(problems: readonly ConfigProblem[], ownFile: string): ConfigProblem[] {
  const rank = ({ file, line }: ConfigProblem): number => (line === 0 ? 0 : file === ownFile ? 1 : 2);
  return problems.toSorted((a, b) => rank(a) - rank(b) || a.line - b.line || a.column - b.column);
}
