/** LIST: one page of the matching objects, now or at a revision. */

import { StoreError, orderedKey, type Store, type StoredEntry } from '../storage/store.ts';
import { decodeContinue, encodeContinue } from './continue-token.ts';
import { filterInTurns } from './in-turns.ts';
import type { ListQuery } from '../request/query/list-query.ts';
import { expired, tooLargeResourceVersion } from '../status.ts';
import { StatusError } from '../../kube/status-error.ts';

export interface ObjectPage {
  readonly entries: readonly StoredEntry[];
  readonly revision: number;
  /** `''`: this is the last page. */
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

/** The revision of the list; undefined: now. */
async function revisionOf(
  store: Store,
  query: ListQuery,
  continued: number | undefined,
): Promise<number | undefined> {
  if (continued !== undefined) return continued < 0 ? undefined : continued;
  const requested = Number(query.resourceVersion || 0);
  if (requested === 0) return undefined;
  const current = await store.revision();
  if (requested > current) throw tooLargeResourceVersion(requested, current);
  return query.isExact ? requested : undefined;
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
