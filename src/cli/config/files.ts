/** Finds and reads the files of a configuration. */

import { existsSync } from 'node:fs';
import { ConfigError, type ConfigProblem } from '../../base/errors.ts';
import { readDocument } from '../../config-file/document.ts';
import { configurationTextHash, displayName, readTextFile } from '../../config-file/source-file.ts';
import { folderOf, vclusterFileOf, type ConfigText, type VclusterText } from '../../shared-config/layers.ts';
import { chartKeyOf, withoutHeading } from '../../shared-config/vcluster-values.ts';
import { overridesOfCommandLine, type CommandLine } from './command-line.ts';

/** Text by path; undefined for a file that could not be read. */
export type FileTexts = ReadonlyMap<string, string | undefined>;

/** The limit of a ConfigMap. */
export const FILE_BYTES_MAX = 1024 * 1024;

export class InvalidConfigError extends ConfigError {
  /** See {@link ReadFiles.files}. */
  readonly files: FileTexts;

  constructor(problems: readonly ConfigProblem[], files: FileTexts) {
    super(problems);
    this.files = files;
  }
}

export interface ReadOptions extends CommandLine {
  /** Instead of files: what they name may not exist here. */
  readonly given?: { readonly source: ConfigText; readonly vcluster?: VclusterText };
  /** Values of the chart, as `helm get values` prints them too, stand for the configuration in them. */
  readonly acceptsChart?: boolean;
}

export interface ReadFiles {
  readonly source: ConfigText;
  readonly vcluster: VclusterText | undefined;
  /** Undefined for standard input, and if there is no file. */
  readonly file: string | undefined;
  /** Of the text of the configuration file, see {@link configurationTextHash}; '' if there is none. */
  readonly textHash: string;
  /** What a reload reads again: that file, and vCluster's own values. */
  readonly files: FileTexts;
  /** Absent: whether the files that the configuration names exist is not checked. */
  readonly fileExists?: (path: string) => boolean;
  /** The problem as it is reported to a user who gave no file. */
  readonly described: (problem: ConfigProblem) => ConfigProblem;
}

/** `-` is standard input, undefined no file. Throws a `ConfigError` for a file that cannot be read. */
export async function readConfigFiles(file: string | undefined, options: ReadOptions): Promise<ReadFiles> {
  const { given, acceptsChart = false } = options;
  const text = given?.source.text ?? (file === undefined ? '' : await readConfigText(file));
  const plain: ConfigText = given?.source ?? {
    text,
    file: displayName(file ?? ''),
    ...folderOf(file ?? ''),
  };
  const source = acceptsChart ? withoutChart(plain) : plain;
  const vclusterFile = vclusterFileOf(source, overridesOfCommandLine(options));
  const vcluster =
    given === undefined && vclusterFile !== '' ? await readVclusterText(vclusterFile) : given?.vcluster;
  const own = file === '-' ? undefined : file;
  const files = new Map<string, string | undefined>();
  if (own !== undefined) files.set(own, text);
  if (vcluster !== undefined) files.set(vclusterFile, 'text' in vcluster ? vcluster.text : undefined);
  return {
    source,
    vcluster,
    file: own,
    textHash: text === '' ? '' : configurationTextHash(text),
    files,
    ...(given === undefined && { fileExists: existsSync }),
    described: file === undefined && given === undefined ? asMissingFile : (problem) => problem,
  };
}

/** Most likely the file was forgotten, not the name alone. */
function asMissingFile(problem: ConfigProblem): ConfigProblem {
  if (problem.path !== 'endpointSyncer.name' || problem.line > 0 || problem.file !== '') return problem;
  const message =
    'there is no configuration file: use --config FILE or set ENDPOINT_SYNCER_CONFIG; without one, --name is required';
  return { ...problem, path: '', message };
}

function withoutChart(source: ConfigText): ConfigText {
  const text = withoutHeading(source.text);
  const below = chartKeyOf(readDocument(source.file, text).value);
  return below === undefined ? source : { ...source, text, below };
}

/** A file that cannot be read is a finding at the field that names it. */
async function readVclusterText(file: string): Promise<VclusterText> {
  try {
    return { text: withoutHeading(await readConfigText(file)), file };
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return { file, failure: error.problems.map(({ message }) => message).join(', ') };
  }
}

export function configFile(options: {
  readonly file?: string;
  readonly env: NodeJS.ProcessEnv;
}): string | undefined {
  const file = options.file ?? options.env['ENDPOINT_SYNCER_CONFIG'] ?? '';
  return file === '' ? undefined : file;
}

export function readConfigText(file: string): Promise<string> {
  return readTextFile(file, FILE_BYTES_MAX);
}
