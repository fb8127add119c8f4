/** LIST: one page of the matching objects, now or at a revision. */

import { setImmediate } from 'node:timers/promises';
import { orderedKey } from '../../kube/object.ts';
import { StoreError, type Store, type StoredEntry } from '../storage/store.ts';
import type { ListQuery } from './query-options.ts';
import { expired, tooLargeResourceVersion, badRequest } from '../status.ts';
import { StatusError } from '../../kube/status-error.ts';
import { isJsonObject, type JsonValue } from '../../base/json.ts';

export interface ObjectPage {
  readonly entries: readonly StoredEntry[];
  readonly revision: number;
  readonly continueToken: string;
  /** Unknown (undefined) with a selector, or on the last page. */
  readonly remaining: number | undefined;
}

/** Throws 400, 410 for a compacted revision, 504 for a future one. */
export async function listObjects(store: Store, query: ListQuery): Promise<ObjectPage> {
  const start = query.continueToken === '' ? undefined : decodeContinue(query.continueToken);
  const atRevision = await revisionOf(store, query, start?.revision);
  const page = {
    ...(atRevision === undefined ? {} : { atRevision }),
    ...(start ? { after: start.after } : {}),
    // With a selector the store returns all objects, and the page is cut after selecting.
    ...(query.hasSelector ? {} : { limit: query.limit }),
  };
  const result = await store.list(query.range, page).catch((error: unknown) => {
    throw translated(error, start?.after);
  });
  // One more than the page shows whether others follow.
  const max = query.limit > 0 ? query.limit + 1 : Number.POSITIVE_INFINITY;
  const matching = query.hasSelector
    ? await filterInTurns(result.entries, (entry) => query.matches(entry), max)
    : result.entries;
  const entries = query.hasSelector && query.limit > 0 ? matching.slice(0, query.limit) : matching;
  const last = entries.at(-1);
  const hasMore = query.hasSelector ? entries.length < matching.length : result.remaining > 0;
  const continueToken =
    hasMore && last ? encodeContinue({ revision: result.revision, after: orderedKey(last.key) }) : '';
  const remaining = hasMore && !query.hasSelector ? result.remaining : undefined;
  return { entries, revision: result.revision, continueToken, remaining };
}

async function revisionOf(
  store: Store,
  query: ListQuery,
  continued: number | undefined,
): Promise<number | undefined> {
  if (continued !== undefined) return continued < 0 ? undefined : continued;
  const requested = Number(query.resourceVersion || 0);
  await rejectFuture(store, requested);
  return requested > 0 && query.isExact ? requested : undefined;
}

/** Throws 504 if nothing can be read at the requested revision yet; 0: any. */
export async function rejectFuture(store: Store, requested: number): Promise<void> {
  if (requested === 0) return;
  const current = await store.revision();
  if (requested > current) throw tooLargeResourceVersion(requested, current);
}

function translated(error: unknown, after: string | undefined): unknown {
  // The revision of a token is in the future when the store was restored from a backup since, or when the token is forged.
  const lost = after === undefined ? ['compacted'] : ['compacted', 'future'];
  if (!(error instanceof StoreError) || !lost.includes(error.code)) return error;
  if (after === undefined) return expired('The resourceVersion for the provided list is too old.');
  const { status } = expired(
    'The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue ' +
      'parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided ' +
      'token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was ' +
      'returned and now may show up in the list.',
  );
  return new StatusError({ ...status, metadata: { continue: encodeContinue({ revision: -1, after }) } });
}

export interface ContinuePoint {
  /** -1: continues with current objects, because the revision of the list is compacted. */
  readonly revision: number;
  readonly after: string;
}

export function encodeContinue({ revision, after }: ContinuePoint): string {
  const token = { v: 'meta.k8s.io/v1', rv: revision, start: `${after}\0` };
  return Buffer.from(JSON.stringify(token)).toString('base64url');
}

export function decodeContinue(token: string): ContinuePoint {
  const illegalAt = illegalBase64UrlAt(token);
  if (illegalAt !== undefined) throw invalidToken(`illegal base64 data at input byte ${illegalAt}`);
  let json: JsonValue;
  try {
    json = JSON.parse(Buffer.from(token, 'base64url').toString('utf8')) as JsonValue; // JSON.parse yields JSON
  } catch (cause) {
    throw Object.assign(invalidToken('it does not hold JSON'), { cause });
  }
  const [revision, start] = isJsonObject(json) ? [json['rv'], json['start']] : [];
  if (typeof revision !== 'number' || typeof start !== 'string' || !Number.isSafeInteger(revision)) {
    throw invalidToken('incorrect encoded start resourceVersion');
  }
  return { revision, after: start.replace(/\0$/, '') };
}

function illegalBase64UrlAt(text: string): number | undefined {
  const illegalAt = text.search(/[^A-Za-z0-9_-]/);
  if (illegalAt >= 0) return illegalAt;
  return text.length % 4 === 1 ? text.length - 1 : undefined;
}

function invalidToken(why: string): Error {
  return badRequest(`invalid continue token: continue key is not valid: ${why}`);
}

// Long lists are processed in several turns of the event loop, so that other requests are served in between.

/** Testing or serializing this many objects takes about 10 ms. */
export const ITEMS_PER_TURN = 2000;

export async function filterInTurns<Item>(
  items: readonly Item[],
  matches: (item: Item) => boolean,
  max: number,
): Promise<Item[]> {
  const found: Item[] = [];
  for (const [index, item] of items.entries()) {
    if (index % ITEMS_PER_TURN === ITEMS_PER_TURN - 1) await setImmediate();
    if (matches(item)) found.push(item);
    if (found.length >= max) break;
  }
  return found;
}

export async function mapInTurns<Item, Result>(
  items: readonly Item[],
  map: (item: Item) => Result,
): Promise<Result[]> {
  const results: Result[] = [];
  for (const [index, item] of items.entries()) {
    if (index % ITEMS_PER_TURN === ITEMS_PER_TURN - 1) await setImmediate();
    results.push(map(item));
  }
  return results;
}
