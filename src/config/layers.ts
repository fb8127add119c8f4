/**
 * Merges the layers of one configuration: vCluster's own values file (optional), then the configuration file, then environment and flags.
 */

import { dirname, isAbsolute, resolve } from 'node:path';
import type { ConfigProblem } from '../base/errors.ts';
import {
  type Finding,
  errorAtKey,
  errorAtValue,
  formatPath,
  Fields,
  PATCHED_KEYS,
  pathOf,
} from './finding.ts';
import type { JsonObject } from '../base/json.ts';
import { applyOverrides, originOf, type Override } from './overrides.ts';
import {
  configurationFindings,
  mergeConfig,
  OWN_SECTIONS,
  vclusterDefaults,
  withoutEmptyKeys,
  valuesFindings,
} from './vcluster-values.ts';
import { type ConfigDocument, readDocument } from './document.ts';
import { pathFields } from './schema/schema-check.ts';
import { problemOf, syntaxProblems } from './source-file.ts';

/** The text of a file. */
export interface ConfigText {
  readonly text: string;
  /** Its name in messages, '' when there is no file. */
  readonly file: string;
  /** Relative paths in the file are relative to this folder. Absent: they stay as they are. */
  readonly folder?: string;
  /** The key under which the file, values of the chart, has the configuration. */
  readonly below?: string | undefined;
}

/** vCluster's own values file, or why it could not be read. */
export type VclusterText = ConfigText | { readonly file: string; readonly failure: string };

export interface Layers {
  /** The configuration file with environment and flags, without empty keys. */
  readonly own: JsonObject;
  /** vCluster's own values file, without empty keys; undefined when none is named. */
  readonly vcluster: JsonObject | undefined;
  /** Both, merged: what the schema and the rules check. */
  readonly merged: JsonObject;
  /** The same with empty keys. */
  readonly written: JsonObject;
  /** Problems of the files themselves. */
  readonly problems: readonly ConfigProblem[];
  /** False if a file is not well-formed, or no configuration; the values are incomplete then. */
  readonly isReadable: boolean;
  /** The finding with its position in the file that it is about. */
  readonly locate: (finding: Finding) => ConfigProblem;
}

const VCLUSTER_CONFIG = 'endpointSyncer.vclusterConfig';

export function readLayers(
  source: ConfigText,
  overrides: readonly Override[],
  vclusterText?: VclusterText,
): Layers {
  const document = readDocument(source.file, source.text, source);
  const ownWritten = applyOverrides(withResolvedPaths(document.value, source.folder), overrides);
  const base = vclusterText !== undefined && 'text' in vclusterText ? vclusterText : undefined;
  const vclusterDocument = base && readDocument(base.file, base.text);
  const vcluster = vclusterDocument && withoutEmptyKeys(vclusterDocument.value);
  const written =
    vclusterDocument === undefined ? ownWritten : mergeConfig(inherited(vclusterDocument.value), ownWritten);
  const locate = (finding: Finding): ConfigProblem =>
    locateIn({ document, vclusterDocument, overrides }, finding);
  const others = configurationFindings(withoutEmptyKeys(document.value), vclusterDefaults());
  return {
    own: withoutEmptyKeys(ownWritten),
    vcluster,
    merged: withoutEmptyKeys(written),
    written,
    problems: [
      ...syntaxProblems(document),
      ...(vclusterDocument === undefined ? [] : syntaxProblems(vclusterDocument)),
      ...others.map((finding) => problemIn(document, finding)),
      ...unreadable(vclusterText).map(locate),
      ...foreignValues(vcluster, source.file).map((finding) => problemIn(vclusterDocument, finding)),
    ],
    isReadable: document.isReadable && others.length === 0 && vclusterDocument?.isReadable !== false,
    locate,
  };
}

/** The path of vCluster's own values file that the configuration names; '' for none. */
export function vclusterFileOf(source: ConfigText, overrides: readonly Override[]): string {
  const { value } = readDocument(source.file, source.text, source);
  return new Fields(applyOverrides(withResolvedPaths(value, source.folder), overrides)).text(VCLUSTER_CONFIG);
}

/** The folder of a file; standard input has none. */
export function folderOf(file: string): { readonly folder?: string } {
  return file === '-' || file === '' ? {} : { folder: dirname(resolve(file)) };
}

function withResolvedPaths(value: JsonObject, folder: string | undefined): JsonObject {
  if (folder === undefined) return value;
  const fields = new Fields(value);
  const isRelative = (path: string): boolean => path !== '' && !isAbsolute(path);
  const resolved = pathFields()
    .filter((field) => isRelative(fields.text(field)))
    .map((field) => ({
      path: pathOf(field),
      value: resolve(folder, fields.text(field)),
      origin: '',
    }));
  return applyOverrides(value, resolved);
}

function inherited(vcluster: JsonObject): JsonObject {
  return PATCHED_KEYS.reduce(
    (value, kind) =>
      applyOverrides(value, [{ path: ['sync', 'toHost', kind, 'enabled'], value: undefined, origin: '' }]),
    vcluster,
  );
}

function unreadable(vclusterText: VclusterText | undefined): Finding[] {
  if (vclusterText === undefined || 'text' in vclusterText) return [];
  return [errorAtValue(pathOf(VCLUSTER_CONFIG), `${vclusterText.file} ${vclusterText.failure}`)];
}

/** What is not vCluster's, sections of this program included, which vCluster rejects in its file. */
function foreignValues(vcluster: JsonObject | undefined, file: string): Finding[] {
  if (vcluster === undefined) return [];
  const target = file === '' ? 'the configuration file of endpoint-syncer' : file;
  const misplaced = Object.keys(vcluster)
    .filter((key) => OWN_SECTIONS.has(key))
    .map((key) =>
      errorAtKey([key], `vCluster does not accept this section in its values: move it to ${target}`),
    );
  return [...misplaced, ...valuesFindings(vcluster, vclusterDefaults())];
}

interface Places {
  readonly document: ConfigDocument;
  readonly vclusterDocument: ConfigDocument | undefined;
  readonly overrides: readonly Override[];
}

/** Points to the flag or variable that set the value, else to the file that has more of the path. */
function locateIn({ document, vclusterDocument, overrides }: Places, finding: Finding): ConfigProblem {
  const origin = finding.file === 'vcluster' ? undefined : originOf(finding.path, overrides);
  if (origin !== undefined) return problemAnywhere(origin, finding);
  const isInherited =
    vclusterDocument !== undefined && vclusterDocument.depthOf(finding.path) > document.depthOf(finding.path);
  const file = finding.file ?? (isInherited ? 'vcluster' : 'own');
  return problemIn(file === 'vcluster' ? vclusterDocument : document, finding);
}

/** Without a file, there is no position. */
function problemIn(document: ConfigDocument | undefined, finding: Finding): ConfigProblem {
  return document === undefined || document.source.name === ''
    ? problemAnywhere('', finding)
    : document.problemOf(finding);
}

function problemAnywhere(origin: string, { path, severity, message }: Finding): ConfigProblem {
  return problemOf(origin, { path: formatPath(path), severity, message });
}
