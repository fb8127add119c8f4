/** `render`: prints offline what a sync would write. */

import { plainText } from '../../base/excerpt.ts';
import { formatOption } from '../output/listing.ts';
import type { Command } from 'commander';
import { loadConfig } from '../config/load.ts';
import { asJson, objectKey } from '../../kube/object.ts';
import { addConfigOptions, loaderInput } from '../config-options.ts';
import { type ExitWith, describeFailure, showProgress, tell } from '../output/terminal.ts';
import { readObjects, printObject } from '../output/objects.ts';
import { warnOfOlder } from '../output/older-versions.ts';
import { apiDefaults } from './api-defaults.ts';
import { FileSync, type RenderedWorld } from '../../syncer/rehearsal/files.ts';

interface RenderFlags {
  readonly filename: string[];
  readonly host: string[];
  readonly virtual: string[];
  readonly reverse?: boolean;
  readonly output: string;
}

export function define(command: Command, exitWith: ExitWith): void {
  addConfigOptions(command);
  command
    .requiredOption(
      '-f, --filename <path...>',
      'virtual objects: files, folders or - (with --reverse: host objects)',
    )
    .option('--host <path...>', 'existing host objects', [])
    .option('--virtual <path...>', 'with --reverse: existing virtual objects', [])
    .option('--reverse', 'host to virtual')
    .addOption(formatOption(['yaml', 'json']))
    .action((flags: RenderFlags) => exitWith(() => render(command, flags)));
}

async function render(command: Command, flags: RenderFlags): Promise<number> {
  const { config } = await loadConfig(loaderInput(command));
  const [given, host, virtual] = await Promise.all([
    readObjects(flags.filename),
    readObjects(flags.host, { nameIsEnough: true }),
    readObjects(flags.virtual),
  ]);
  const isReverse = flags.reverse === true;
  using progress = showProgress('rendering');
  await using sync = new FileSync({ admit: apiDefaults() });
  const { rendered, missing, notes, kinds, whyNone, synced } = await sync.run(
    isReverse ? { host: given, virtual } : { virtual: given, host },
    config,
    {
      direction: isReverse ? 'toVirtual' : 'toHost',
      progress: (done, total) => progress.update(done, total),
    },
  );
  progress[Symbol.dispose]();
  if (whyNone !== undefined) tell(whyNone);
  else if (synced[isReverse ? 'host' : 'virtual'].length === 0)
    tell(`note: no ${kinds.join(' or ')} in ${flags.filename.join(', ')}, nothing to render`);
  print(rendered, flags.output);
  // The other direction imports nothing from these files.
  if (!isReverse) for (const note of notes) tell(`note: ${note}`);
  if (!isReverse) for (const one of rendered) if (one.kind === 'object') warnOfOlder(one.object);
  if (!isReverse) for (const object of missing) tell(`note: ${object} ${IN_NO_FILE}`);
  return rendered.some(({ kind }) => kind === 'failed') ? 1 : 0;
}

const IN_NO_FILE = 'is referenced and in no file, so it is not rendered: add its file to -f';

function print(rendered: RenderedWorld['rendered'], output: string): void {
  const objects = rendered.flatMap((one) => (one.kind === 'object' ? [one.object] : []));
  const json = objects.map(asJson);
  const text =
    output === 'json'
      ? printObject({ apiVersion: 'v1', kind: 'List', items: json }, 'json')
      : json.map((object) => printObject(object, 'yaml')).join('---\n');
  process.stdout.write(text);
  for (const one of rendered) {
    if (one.kind === 'skipped' || one.kind === 'refused')
      tell(`skipped ${one.of} ${one.key}: ${plainText(one.reason)}`);
    if (one.kind === 'elsewhere') {
      const what = `${one.object.kind ?? ''} ${objectKey(one.object)}`;
      tell(`note: ${what} is imported into the other cluster; add --reverse to render that direction`);
    }
    if (one.kind === 'failed') tell(`failed ${one.of} ${one.key}: ${describeFailure(one.error)}`);
  }
}
