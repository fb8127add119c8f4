/** `render`: prints offline what a sync would write. */

import { formatOption } from '../output/listing.ts';
import type { Command } from 'commander';
import { loadConfig } from '../../config/load.ts';
import { asJson, objectKey } from '../../kube/object.ts';
import { addConfigOptions, loaderInput } from '../config-options.ts';
import { type ExitWith, describeFailure, showProgress } from '../output/terminal.ts';
import { readObjects, printObject } from '../output/objects.ts';
import {
  placedWorld,
  renderToHost,
  renderToVirtual,
  syncedKindNames,
  type Rendered,
} from './offline-sync.ts';

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
  const [given = [], host = [], virtual = []] = await Promise.all(
    [flags.filename, flags.host, flags.virtual].map(readObjects),
  );
  const kinds = syncedKindNames(config);
  const total = given.filter(({ kind = '' }) => kinds.includes(kind)).length;
  if (kinds.length === 0)
    process.stderr.write(
      'no kind is synced: set sync.toHost.endpoints.enabled or sync.toHost.endpointSlices.enabled to true\n',
    );
  else if (total === 0)
    process.stderr.write(
      `note: no ${kinds.join(' or ')} in ${flags.filename.join(', ')}, nothing to render\n`,
    );
  const isReverse = flags.reverse === true;
  const world = placedWorld(isReverse ? { host: given, virtual } : { virtual: given, host }, config);
  using progress = showProgress('rendering');
  const render = isReverse ? renderToVirtual : renderToHost;
  const { rendered } = await render(world, config, { progress: (done) => progress.update(done, total) });
  progress[Symbol.dispose]();
  print(rendered, flags.output);
  return rendered.some(({ kind }) => kind === 'failed') ? 1 : 0;
}

function print(rendered: readonly Rendered[], output: string): void {
  const objects = rendered.flatMap((one) => (one.kind === 'object' ? [one.object] : []));
  const json = objects.map(asJson);
  const text =
    output === 'json'
      ? printObject({ apiVersion: 'v1', kind: 'List', items: json }, 'json')
      : json.map((object) => printObject(object, 'yaml')).join('---\n');
  process.stdout.write(text);
  for (const one of rendered) {
    if (one.kind === 'skipped' || one.kind === 'refused')
      process.stderr.write(`skipped ${one.of} ${one.key}: ${one.reason}\n`);
    if (one.kind === 'elsewhere') {
      const what = `${one.object.kind ?? ''} ${objectKey(one.object)}`;
      process.stderr.write(
        `note: ${what} is imported into the other cluster; add --reverse to render that direction\n`,
      );
    }
    if (one.kind === 'failed')
      process.stderr.write(`failed ${one.of} ${one.key}: ${describeFailure(one.error)}\n`);
  }
}
