/** Text and overrides in, a configuration or every problem out. Pure. */

import type { ConfigProblem } from '../kube/errors.ts';
import { vclusterConfigOf, vclusterDefaults, withoutEmptyKeys } from './defaults.ts';
import { type ConfigDocument, readDocument } from './document.ts';
import { Fields, pathOf } from './fields.ts';
import type { Finding } from './finding.ts';
import { applyOverrides, originOf, type Override, overridesOf } from './overrides.ts';
import { checkPatches, patchesIn } from './patch-rules.ts';
import { formatPath } from './path.ts';
import { problemAt, problemOf, syntaxProblems } from './problem.ts';
import { checkRules } from './rules.ts';
import { checkSchema } from './schema-check.ts';
import { toConfig } from './to-config.ts';
import type { Config, ConfigChecks, ConfigFlags } from './types.ts';
import { configWarnings } from './warnings.ts';

export interface ParseOptions {
  readonly env: NodeJS.ProcessEnv;
  readonly flags: ConfigFlags;
  readonly checks: ConfigChecks;
  /** For commands that have nothing to do with a virtual cluster. */
  readonly isNameOptional?: boolean;
}

export interface ParseResult {
  /** Undefined when any problem is an error. */
  readonly config?: Config;
  /** In the order of the file; what has no place in it comes first. */
  readonly problems: readonly ConfigProblem[];
}

const PATCH_LISTS = ['sync.toHost.endpoints.patches', 'sync.toHost.endpointSlices.patches'];

/** Reads one configuration. `file` is its name in messages, '' when there is none. */
export function parseConfig(
  source: { readonly text: string; readonly file: string },
  options: ParseOptions,
): ParseResult {
  const document = readDocument(source.file, source.text);
  const syntax = syntaxProblems(document);
  if (!document.isReadable) return { problems: syntax };
  const overrides = overridesOf(options.env, options.flags);
  const value = applyOverrides(document.value, overrides);
  const written = withoutEmptyKeys(value);
  const defaults = vclusterDefaults();
  const { config: parsed, findings } = checkSchema(written, options.isNameOptional);
  const all = [
    ...findings,
    ...PATCH_LISTS.flatMap((list) =>
      checkPatches(new Fields(value).value(list), pathOf(list), options.checks),
    ),
    ...checkRules(written, options.checks),
    ...configWarnings(written, defaults),
  ];
  const located = all.map((finding) => locate(finding, document, overrides));
  const problems = inFileOrder([...syntax, ...located]);
  if (parsed === undefined || problems.some((problem) => problem.severity === 'error')) return { problems };
  const patches = patchesIn(new Fields(written).value('sync.toHost.endpoints.patches'));
  return { config: toConfig(parsed, patches, vclusterConfigOf(written, defaults)), problems };
}

function locate(finding: Finding, document: ConfigDocument, overrides: readonly Override[]): ConfigProblem {
  const said = { path: formatPath(finding.path), severity: finding.severity, message: finding.message };
  const origin = originOf(finding.path, overrides);
  if (origin !== undefined) return problemOf(origin, said);
  if (document.source.name === '') return problemOf('', said);
  const offset =
    finding.at === 'key'
      ? document.offsetOfKey(finding.path)
      : document.offsetOfValue(finding.path, finding.index);
  return problemAt(document.source, offset, said);
}

function inFileOrder(problems: readonly ConfigProblem[]): ConfigProblem[] {
  return problems.toSorted((a, b) => a.line - b.line || a.column - b.column);
}
