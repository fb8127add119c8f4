/** Parsing text with the real checks, and problems in the short form that tests compare. */

import { parseConfig, type ParseResult } from '../../../src/cli/config/parse.ts';
import type { Config } from '../../../src/syncer/config/config.ts';
import type { ConfigFlags } from '../../../src/cli/config/command-line.ts';
import type { ConfigProblem } from '../../../src/base/errors.ts';

export interface Settings {
  readonly env?: Record<string, string>;
  readonly flags?: ConfigFlags;
  readonly acceptsFleet?: boolean;
}

/** Most tests patch made-up fields, which no kind has. */
const MADE_UP = /never matches/u;

/** The result, without warnings that a kind has no such field. */
export function parseText(text: string, settings: Settings = {}): ParseResult {
  const result = parseConfig({ text, file: 'f.yaml' }, { env: {}, flags: {}, ...settings });
  return { ...result, problems: result.problems.filter(({ message }) => !MADE_UP.test(message)) };
}

/** `line:column path message` of every problem. */
export function problemsIn(text: string, settings?: Settings): string[] {
  return parseText(text, settings).problems.map(brief);
}

export function brief({ line, column, path, severity, message }: ConfigProblem): string {
  return `${line}:${column} ${path}${severity === 'warning' ? ' (warning)' : ''} ${message}`;
}

/** The configuration of a text that must be valid. */
export function validConfig(text: string, settings?: Settings): Config {
  const { config, problems } = parseText(text, settings);
  if (config === undefined) throw new Error(problems.map(brief).join('\n'));
  return config;
}

/** Text of a valid configuration with these lines below `endpointSyncer`. */
export function withSyncer(lines: string): string {
  return `endpointSyncer:\n  name: vc\n${lines.replaceAll(/^/gmu, '  ')}\n`;
}

/** Text of a valid configuration with these entries of the patches of a kind; the first character is at line 5, column 5. */
export function withPatches(entries: string, key = 'endpoints'): string {
  return `endpointSyncer: {name: vc}\nsync: {toHost: {${key}: {patches:\n  [\n    # entries\n${entries.replaceAll(/^/gmu, '    ')}\n  ]}}}\n`;
}
