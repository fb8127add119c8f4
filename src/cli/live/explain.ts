/** `explain`: why one object is, or is not, synced, and what each stage of a sync does with it. */

import { type Command, Option } from 'commander';
import { systemClock } from '../../base/clock.ts';
import { TerminalError } from '../../base/errors.ts';
import type { JsonObject, JsonValue } from '../../base/json.ts';
import { missingRights } from '../../kube/access-review.ts';
import { keyOf, parseKey, type ObjectKey } from '../../kube/object.ts';
import type { CopyAddress } from '../../syncer/kinds/kind.ts';
import { describeRight, requiredRights } from '../../syncer/rights.ts';
import { addConfigOptions } from '../config-options.ts';
import { addVclusterOption } from './hosted.ts';
import { guarded } from '../output/error-report.ts';
import { plainText } from '../../base/excerpt.ts';
import { formatJson, formatTable } from '../output/listing.ts';
import { knownKind, nameProblem } from '../kind-scope.ts';
import { readDaemon, readEvents, type LeaseState, type ReportedEvent } from './reports.ts';
import { type Connection, reaching, readSnapshot, type Snapshot } from './snapshot.ts';
import { reportingPipeline, type Application } from '../offline/applied-patches.ts';
import { KeptSandbox } from '../offline/kept-sandbox.ts';
import { planSnapshot, withConnection, type WorldPlan } from './session.ts';
import {
  stagesOf,
  writesOf,
  type Stages,
  type MergeStage,
  type PatchStage,
  type WriteStage,
} from './stages.ts';
import { findTarget, hostPlaceOf, type Target } from './target.ts';
import { namespaceAdvice } from '../../syncer/reconcile/environment.ts';
import { addressOf, statusOfImport, statusOfOther, statusOf, type SyncStatus } from './object-status.ts';

interface ExplainFlags {
  readonly host?: boolean;
  readonly kind?: string;
  readonly output: 'text' | 'json' | 'yaml';
}

export function define(command: Command, exit: (code: number) => void): void {
  command
    .argument(
      '<name>',
      'NAMESPACE/NAME of a virtual object (with --host: of a host object, or its NAME alone)',
    )
    .option('--host', 'the name is a host name')
    .option('-k, --kind <kind>', 'kind of the object, if objects of several kinds have the name')
    .addOption(
      new Option('-o, --output <format>', 'text, json or yaml')
        .choices(['text', 'json', 'yaml'])
        .default('text'),
    );
  addConfigOptions(command);
  addVclusterOption(command);
  command.action(async (name: string, flags: ExplainFlags) => {
    const isNameAlone = flags.host === true && !name.includes('/');
    const problem = isNameAlone ? undefined : nameProblem([name]);
    if (problem !== undefined) command.error(`error: ${problem}`, { exitCode: 2 });
    exit(await guarded(() => withConnection(command, (connection) => explain(connection, name, flags))));
  });
}

async function explain(connection: Connection, name: string, flags: ExplainFlags): Promise<number> {
  const missing = await missingOf(connection);
  const snapshot = await snapshotOrMissing(connection, missing);
  if (snapshot === undefined) {
    const sentence = `nothing is synced: rights are missing: ${missing.join(', ')}`;
    const json = { state: 'failed', reason: 'MissingRight', sentence };
    process.stdout.write(flags.output === 'text' ? `${sentence}\n` : formatJson(json, flags.output));
    return 1;
  }
  const { config } = snapshot;
  const applications: Application[] = [];
  await using sandbox = new KeptSandbox();
  const plan = await planSnapshot(snapshot, {
    sandbox,
    createPipeline: reportingPipeline((application) => applications.push(application)),
  });
  const kind = flags.kind === undefined ? undefined : knownKind(flags.kind).kind;
  const key = flags.host === true && !name.includes('/') ? `${config.host.namespace}/${name}` : name;
  const target = findTarget(plan, { key, isHost: flags.host === true, kind });
  if (target === undefined) {
    process.stderr.write(
      `error: ${kind ?? 'object'} "${key}" ${flags.host === true ? 'does not exist on the host' : 'exists neither in the virtual cluster nor on the host'}\n`,
    );
    return 1;
  }
  const stages = target.kind === 'object' ? await stagesOf(target.plan, applications) : undefined;
  const explanation = await explanationOf(connection, plan, target, missing, stages);
  process.stdout.write(
    flags.output === 'text'
      ? formatExplanation(explanation)
      : formatJson(asJsonObject(explanation), flags.output),
  );
  return explanation.status.reason === 'ReferenceNotFound' ? 1 : 0;
}

/** Rights that the daemon needs and that the user of this command does not have. */
async function missingOf({ config, clusters }: Connection): Promise<string[]> {
  const rights = requiredRights(config, { isDryRun: false });
  const missing = await Promise.all(
    (['virtual', 'host'] as const).map((cluster) =>
      reaching(cluster, () =>
        missingRights(
          clusters[cluster],
          rights.filter((right) => right.cluster === cluster),
        ),
      ),
    ),
  );
  return missing.flat().map(describeRight);
}

/** Undefined where the clusters may not be read. */
async function snapshotOrMissing(
  connection: Connection,
  missing: readonly string[],
): Promise<Snapshot | undefined> {
  try {
    return await readSnapshot(connection, { everyKind: true });
  } catch (error) {
    if (error instanceof TerminalError && missing.length > 0) return undefined;
    throw error;
  }
}

async function explanationOf(
  { clusters }: Connection,
  { snapshot, objection }: WorldPlan,
  target: Target,
  missing: readonly string[],
  stages: Stages | undefined,
): Promise<Explanation> {
  const nowMs = systemClock.now();
  const { lease, runsOther } = await reaching('host', () =>
    readDaemon(snapshot.config, clusters.host, nowMs),
  );
  const { resource, virtual } = target;
  const place = {
    kind: resource.kind,
    virtual: virtual === undefined ? '' : keyOf(virtual),
    host: hostPlaceOf(target),
    lease,
  };
  if (target.kind === 'other') {
    return {
      ...place,
      status: statusOfOther(target, snapshot.config),
      stages: undefined,
      write: [],
      events: [],
    };
  }
  const { changes } = target.plan;
  if (target.kind === 'import') {
    return {
      ...place,
      status: statusOfImport(target.plan, { runsOther, objection }),
      stages: undefined,
      write: writesOf(changes),
      events: [],
    };
  }
  const { namespace = '', uid = '' } = target.plan.seen.virtual?.metadata ?? {};
  const events = uid === '' ? [] : ((await readEvents(clusters.virtual, namespace)).get(uid) ?? []);
  const status = statusOf(target.plan, {
    nowMs,
    events,
    missingNamespaces: snapshot.missingNamespaces,
    namespaceAdvice: namespaceAdvice(snapshot.config),
    lease,
    runsOther,
    objection,
    syncsServices: snapshot.config.services.mode === 'sync',
    missingRights: missing,
  });
  const address = addressOf(target.plan);
  return { ...place, status, stages, write: writesOf(changes), events, ...(address && { address }) };
}

function asJsonObject({
  kind,
  virtual,
  host,
  status,
  address,
  stages,
  write,
  events,
  lease,
}: Explanation): JsonObject {
  const named = (key: ObjectKey): JsonObject => ({ ...parseKey(key) });
  return {
    kind,
    virtual: named(virtual),
    host: named(host),
    ...status,
    ...address,
    stages: (stages ?? { write }) as unknown as JsonValue, // interfaces of JSON members only
    events: events.map(({ type, reason, note, lastMs }) => ({
      type,
      reason,
      note,
      last: new Date(lastMs).toISOString(),
    })),
    lease: lease === undefined ? null : { name: lease.key, holder: lease.holder },
  };
}

// An explanation as text: the sentence that answers "why", then the stages.

interface Explanation {
  readonly kind: string;
  readonly virtual: ObjectKey;
  readonly host: ObjectKey;
  readonly status: SyncStatus;
  readonly address?: CopyAddress;
  /** Undefined for an object that is imported, or is no copy. */
  readonly stages: Stages | undefined;
  readonly write: readonly WriteStage[];
  readonly events: readonly ReportedEvent[];
  readonly lease: LeaseState | undefined;
}

const EVENTS_MAX = 5;

function formatExplanation(explanation: Explanation): string {
  const { status, address, stages, write, events, lease } = explanation;
  const rows: string[][] = [];
  const add = (stage: string, lines: readonly string[]): void => {
    for (const [at, line] of lines.entries()) rows.push([at === 0 ? stage : '', line]);
  };
  if (stages !== undefined) addStages(stages, status.sentence, add);
  add('write', write.length === 0 ? ['nothing to write'] : write.map(writeLine));
  if (address !== undefined) add('address', [addressLine(address)]);
  if (lease !== undefined)
    add('leader', [lease.holder === '' ? `no replica holds Lease ${lease.key}` : lease.holder]);
  // The first sentence is that of the newest Event with its reason.
  const told = events.find(({ reason }) => reason === status.reason);
  const others = events.filter((event) => event !== told).slice(0, EVENTS_MAX);
  add(
    'events',
    others.map(({ reason, note }) => `${reason}: ${firstLine(note)}`),
  );
  return `${plainText(capital(status.sentence))}.\n\n${formatTable(rows)}`;
}

/** Events have the line breaks of a note escaped. */
function firstLine(note: string): string {
  return note.split(/\n|\\u000a/u)[0] ?? '';
}

function addStages(
  stages: Stages,
  sentence: string,
  add: (stage: string, lines: readonly string[]) => void,
): void {
  add('gate', [stages.gate.detail]);
  add('name', [stages.name.detail]);
  add('translation', stages.translation);
  for (const patch of stages.patches) add(`patches[${patch.index}]`, patchLines(patch, sentence));
  add('merge', stages.merge.map(mergeLine));
}

function patchLines(
  { direction, path, matches, nearest, error, action }: PatchStage,
  sentence: string,
): string[] {
  const back = direction === 'toVirtual' ? ' (host to virtual)' : '';
  if (error !== null) {
    const [message = '', ...excerpt] = error.split('\n');
    return [sentence.includes(message) ? `${path}: fails${back}` : message, ...excerpt];
  }
  if (matches.length === 0) {
    const exists = nearest === null || nearest === '' ? '' : `; ${nearest} exists`;
    return [`${path}: no match${exists}${back}`];
  }
  if (action === 'keep') return matches.map((match) => `${match.path}: not synced in this direction${back}`);
  return matches.map((match) => `${match.path}: ${value(match.before)} -> ${value(match.after)}${back}`);
}

function mergeLine({ path, winner, before, after }: MergeStage): string {
  const other = winner === 'virtual' ? 'host' : 'virtual object';
  const side = winner === 'virtual' ? 'the virtual object' : 'the host';
  return `${path}: ${side} wins; on the ${other} ${value(before)} -> ${value(after)}`;
}

function writeLine({ cluster, verb, kind, object, reason }: WriteStage): string {
  return `${verb} ${kind} ${object} in the ${cluster} cluster: ${reason}`;
}

function addressLine({ addresses, ports }: CopyAddress): string {
  const served = ports.length === 0 ? '' : `, ports ${ports.join(', ')}`;
  return `${addresses.length === 0 ? 'no address' : addresses.join(', ')}${served}`;
}

const VALUE_MAX = 100;

function value(json: JsonValue): string {
  const text = json === null ? 'nothing' : JSON.stringify(json);
  return text.length > VALUE_MAX ? `${text.slice(0, VALUE_MAX - 1)}…` : text;
}

function capital(sentence: string): string {
  return sentence.charAt(0).toUpperCase() + sentence.slice(1);
}
