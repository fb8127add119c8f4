/** Notes in a few Secrets per table. */

import { createHash } from 'node:crypto';
import type { KubeObject } from '../../../kube/object.ts';
import { StatusError } from '../../../kube/status-error.ts';
import type { JsonObject } from '../../../base/json.ts';
import type { Logger } from '../../../base/logger.ts';
import type { Notes } from '../store.ts';
import { rejectedByHost, failureKindOf, type HostSecrets, type RetryBudget } from './host-secrets.ts';
import { pack, revisionOf, unpack, type SecretNames } from './secret-codec.ts';

type Changes = ReadonlyMap<string, string | undefined>;

/** Enough for about a hundred thousand notes; also the maximum number of requests for one change. */
const SHARDS = 8;
export const NOTES_TYPE = 'endpoint-syncer/notes';
const FIELD = 'notes';

/** A shard as it was last read or written; a write based on an older revision conflicts. */
interface Shard {
  readonly revision: number;
  readonly notes: ReadonlyMap<string, string>;
}

export class ShardedNotes implements Notes {
  readonly #table: string;
  readonly #tooLarge: string;
  readonly #names: SecretNames;
  readonly #secrets: HostSecrets;
  readonly #logger: Logger;
  readonly #shards = new Map<string, Shard>();

  constructor(table: string, names: SecretNames, secrets: HostSecrets, logger: Logger) {
    this.#table = table;
    this.#tooLarge = `the notes ${JSON.stringify(table)} do not fit into ${SHARDS} Secrets`;
    this.#names = names;
    this.#secrets = secrets;
    this.#logger = logger;
  }

  async read(): Promise<ReadonlyMap<string, string>> {
    const budget = this.#secrets.budget();
    // By name: labels can be forged by any client that may write a Secret.
    const shards = await Promise.all(
      Array.from({ length: SHARDS }, (_, index) => this.#load(this.#names.notes(this.#table, index), budget)),
    );
    return new Map(shards.flatMap((shard) => [...(shard?.notes ?? [])]));
  }

  async write(changes: Changes): Promise<void> {
    const byShard = Map.groupBy(changes, ([key]) => shardOf(key));
    await Promise.all([...byShard].map(([shard, some]) => this.#writeShard(shard, new Map(some))));
  }

  /** Writes are idempotent, so a lost response is simply retried. */
  async #writeShard(index: number, changes: Changes): Promise<void> {
    const secrets = this.#secrets;
    const name = this.#names.notes(this.#table, index);
    const budget = secrets.budget();
    for (let shard = this.#shards.get(name); ; shard = undefined) {
      try {
        shard ??= await this.#load(name, budget);
        const next = changed(shard?.notes, changes);
        if (next === undefined) return;
        const data = { [FIELD]: await pack(JSON.stringify([...next]), this.#tooLarge) };
        const answer =
          shard === undefined
            ? await secrets.create(this.#newShard(name, data), budget.request)
            : await secrets.patch(name, patchOf(shard, data), budget.request);
        this.#shards.set(name, { revision: revisionOf(answer), notes: next });
        return;
      } catch (error) {
        budget.checkOpen();
        this.#shards.delete(name);
        const isMissingNamespace = shard === undefined && error instanceof StatusError && error.code === 404;
        if (failureKindOf(error) === 'permanent' || isMissingNamespace)
          throw rejectedByHost(error, secrets.namespace);
        await budget.pause(error);
      }
    }
  }

  async #load(name: string, budget: RetryBudget): Promise<Shard | undefined> {
    const secret = await budget.read((request) => this.#secrets.get(name, request));
    return secret === undefined ? undefined : this.#remember(secret);
  }

  #remember(secret: KubeObject): Shard {
    const notes = readNotes(secret);
    const { name } = secret.metadata;
    if (notes === undefined) {
      this.#logger.warn(
        { secret: name, namespace: this.#secrets.namespace },
        'a Secret with notes of the store cannot be read: its notes are lost, and it will be overwritten',
      );
    }
    const shard = { revision: revisionOf(secret), notes: notes ?? new Map<string, string>() };
    this.#shards.set(name, shard);
    return shard;
  }

  #newShard(name: string, data: JsonObject): KubeObject {
    const labels = this.#names.notesLabels(this.#table);
    return { apiVersion: 'v1', kind: 'Secret', metadata: { name, labels }, type: NOTES_TYPE, data };
  }
}

function patchOf(shard: Shard, data: JsonObject): JsonObject {
  return { metadata: { resourceVersion: String(shard.revision) }, data };
}

/** The notes after the changes; undefined when nothing changes. */
function changed(
  notes: ReadonlyMap<string, string> | undefined,
  changes: Changes,
): ReadonlyMap<string, string> | undefined {
  const next = new Map(notes);
  let isChanged = false;
  for (const [key, value] of changes) {
    if (next.get(key) === value) continue;
    isChanged = true;
    if (value === undefined) next.delete(key);
    else next.set(key, value);
  }
  return isChanged ? next : undefined;
}

function shardOf(key: string): number {
  return (createHash('sha256').update(key).digest()[0] ?? 0) % SHARDS;
}

/** Undefined when the Secret is damaged. */
export function readNotes(secret: KubeObject): ReadonlyMap<string, string> | undefined {
  if (secret['type'] !== NOTES_TYPE) return undefined;
  const read = unpack(secret, FIELD);
  if (typeof read === 'string' || !Array.isArray(read.document)) return undefined;
  const notes = new Map<string, string>();
  for (const pair of read.document) {
    const [key, value] = Array.isArray(pair) ? pair : [];
    if (typeof key !== 'string' || typeof value !== 'string') return undefined;
    notes.set(key, value);
  }
  return notes;
}
