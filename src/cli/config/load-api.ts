/** Loads what the key and token API needs of a configuration. The sync's sections are not checked, and none of its files is loaded. */

import * as z from 'zod';
import { checkManagement, managementSchema, type ManagementConfig } from '../../access-keys/config.ts';
import type { ConfigProblem } from '../../base/errors.ts';
import { nearestWord } from '../../base/suggest.ts';
import { errorAtKey, Fields, type Finding } from '../../config-file/finding.ts';
import { missingFiles, placeholderWarnings } from '../../config-file/mistakes.ts';
import { checkSections } from '../../config-file/schema-check.ts';
import { problemsOfLayers, readLayers } from '../../shared-config/layers.ts';
import { misspeltSections, rulesAcross, SHARED_FIELDS, vclusterConfig } from '../../shared-config/shared.ts';
import { vclusterDefaults } from '../../shared-config/vcluster-values.ts';
import { overridesOfCommandLine, type CommandLine } from './command-line.ts';
import { configFile, InvalidConfigError, readConfigFiles, type ReadFiles } from './files.ts';

const shared = z.object({ endpointSyncer: z.looseObject({ ...SHARED_FIELDS, vclusterConfig }).prefault({}) });
const sections = shared.extend({ managementApi: managementSchema });

export interface ApiConfig extends Pick<z.output<typeof shared>['endpointSyncer'], 'http' | 'log'> {
  readonly management: ManagementConfig;
  readonly warnings: readonly ConfigProblem[];
  /** Undefined for standard input, and if there is no file. */
  readonly file: string | undefined;
}

/** Precedence: flags, environment, file, vCluster's file, defaults. Throws a `ConfigError` with all problems. */
export async function loadApiConfig(options: CommandLine & { readonly file?: string }): Promise<ApiConfig> {
  const read = await readConfigFiles(configFile(options), options);
  const { source, vcluster, file, files, fileExists } = read;
  const layers = readLayers(source, overridesOfCommandLine(options), { sections }, vcluster);
  if (!layers.isReadable) throw new InvalidConfigError(layers.problems, files);
  const { merged } = layers;
  const { data, findings } = checkSections(shared, merged);
  const management = checkManagement(merged, source.folder);
  const problems = problemsOfLayers(layers, [
    ...findings,
    ...management.findings,
    ...rulesAcross(new Fields(merged)),
    ...mistakes(new Fields(layers.own), new Fields(merged), fileExists),
  ]);
  const { section } = management;
  const isInvalid = problems.some(({ severity }) => severity === 'error');
  if (isInvalid || data === undefined || section === undefined) throw new InvalidConfigError(problems, files);
  const { host, http, log } = data.endpointSyncer;
  return { management: { ...section, host }, http, log, warnings: problems, file };
}

function mistakes(own: Fields, merged: Fields, fileExists: ReadFiles['fileExists'] = () => true): Finding[] {
  return [
    ...misspeltSections(own, Object.keys(vclusterDefaults())),
    ...misspeltFields(own),
    ...missingFiles(merged, ['endpointSyncer.host.kubeconfig'], fileExists),
    ...['endpointSyncer', 'managementApi'].flatMap((section) => placeholderWarnings(own, section)),
  ];
}

/** With a misspelt `host`, the API would use another cluster. What resembles none of its fields is the sync's. */
function misspeltFields(own: Fields): Finding[] {
  const known = Object.keys(SHARED_FIELDS);
  return own.keys('endpointSyncer').flatMap((key) => {
    const near = known.includes(key) ? undefined : nearestWord(key, known);
    if (near === undefined) return [];
    return [errorAtKey(['endpointSyncer', key], `unknown key "${key}", did you mean "${near}"?`)];
  });
}
