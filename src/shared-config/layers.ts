/**
 * Merges the layers of one configuration: vCluster's own values file (optional), then the configuration file, then environment and flags.
 */

import { dirname, isAbsolute, resolve } from 'node:path';
import type * as z from 'zod';
import type { ConfigProblem } from '../base/errors.ts';
import type { JsonObject } from '../base/json.ts';
import { type ConfigDocument, readDocument } from '../config-file/document.ts';
import {
  type ConfigPath,
  type Finding,
  errorAtKey,
  errorAtValue,
  formatPath,
  Fields,
  pathOf,
  withoutConsequences,
} from '../config-file/finding.ts';
import { mergeConfig, withoutEmptyKeys } from '../config-file/merge.ts';
import { applyOverrides, originOf, type Override } from '../config-file/overrides.ts';
import { pathFields } from '../config-file/schema-check.ts';
import { problemOf, syntaxProblems } from '../config-file/source-file.ts';
import { OWN_SECTIONS } from './shared.ts';
import { configurationFindings, valuesFindings } from './vcluster-values.ts';

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
  readonly source: ConfigText;
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

/** What a reader knows of the fields. */
export interface FieldsRead {
  /** Its sections: the paths of files in them are relative to the configuration file. */
  readonly sections: z.ZodType;
  /** What vCluster's own values do not decide. */
  readonly notInherited?: readonly ConfigPath[];
}

export function readLayers(
  source: ConfigText,
  overrides: readonly Override[],
  { sections, notInherited = [] }: FieldsRead,
  vclusterText?: VclusterText,
): Layers {
  const document = readDocument(source.file, source.text, source);
  const resolved = withResolvedPaths(document.value, pathFields(sections), source.folder);
  const ownWritten = applyOverrides(resolved, overrides);
  const base = vclusterText !== undefined && 'text' in vclusterText ? vclusterText : undefined;
  const vclusterDocument = base && readDocument(base.file, base.text);
  const vcluster = vclusterDocument && withoutEmptyKeys(vclusterDocument.value);
  const written =
    vclusterDocument === undefined
      ? ownWritten
      : mergeConfig(without(vclusterDocument.value, notInherited), ownWritten);
  const locate = (finding: Finding): ConfigProblem =>
    locateIn({ document, vclusterDocument, overrides }, finding);
  const others = configurationFindings(withoutEmptyKeys(document.value));
  return {
    source,
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
  const resolved = withResolvedPaths(value, [VCLUSTER_CONFIG], source.folder);
  return new Fields(applyOverrides(resolved, overrides)).text(VCLUSTER_CONFIG);
}

/** The folder of a file; standard input has none. */
export function folderOf(file: string): { readonly folder?: string } {
  return file === '-' || file === '' ? {} : { folder: dirname(resolve(file)) };
}

function withResolvedPaths(
  value: JsonObject,
  names: readonly string[],
  folder: string | undefined,
): JsonObject {
  if (folder === undefined) return value;
  const fields = new Fields(value);
  const isRelative = (path: string): boolean => path !== '' && !isAbsolute(path);
  const resolved = names
    .filter((field) => isRelative(fields.text(field)))
    .map((field) => ({
      path: pathOf(field),
      value: resolve(folder, fields.text(field)),
      origin: '',
    }));
  return applyOverrides(value, resolved);
}

function without(values: JsonObject, paths: readonly ConfigPath[]): JsonObject {
  return applyOverrides(
    values,
    paths.map((path) => ({ path, value: undefined, origin: '' })),
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
  return [...misplaced, ...valuesFindings(vcluster)];
}

interface Places {
  readonly document: ConfigDocument;
  readonly vclusterDocument: ConfigDocument | undefined;
  readonly overrides: readonly Override[];
}

/** Points to the flag or variable that set the value, else to the file that has more of the path. */
function locateIn({ document, vclusterDocument, overrides }: Places, finding: Finding): ConfigProblem {
  const origin = finding.file === 'base' ? undefined : originOf(finding.path, overrides);
  if (origin !== undefined) return problemAnywhere(origin, finding);
  const isInherited =
    vclusterDocument !== undefined && vclusterDocument.depthOf(finding.path) > document.depthOf(finding.path);
  const file = finding.file ?? (isInherited ? 'base' : 'own');
  return problemIn(file === 'base' ? vclusterDocument : document, finding);
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

/** The problems of the files and of what they say, in the order of the files. What follows from a misspelt key is left out. */
export function problemsOfLayers(layers: Layers, findings: readonly Finding[]): ConfigProblem[] {
  const located = withoutConsequences(findings).map((finding) => layers.locate(finding));
  return inFileOrder([...layers.problems, ...located], layers.source.file);
}

/** Problems without a position first, then the configuration file, then vCluster's. */
export function inFileOrder(problems: readonly ConfigProblem[], ownFile: string): ConfigProblem[] {
  const rank = ({ file, line }: ConfigProblem): number => (line === 0 ? 0 : file === ownFile ? 1 : 2);
  return problems.toSorted((a, b) => rank(a) - rank(b) || a.line - b.line || a.column - b.column);
}
