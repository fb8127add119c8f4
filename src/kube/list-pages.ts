/** Lists that are read page by page, for callers without a cache. */

import { ResponseTooLargeError } from './client/exchange.ts';
import type { KubeObject, Resource } from './object.ts';
import { StatusError } from './status-error.ts';
import type { ClusterClient, ListOptions } from './types.ts';

const PAGE_SIZE = 500;
/** Each begins with pages four times as large: the last one with 8000 objects, where the first had 500. */
const RESTARTS_MAX = 2;

/**
 * What `pick` returns for each object. A page that is too large is requested again as a smaller one. An API server forgets the state that its pages are from
 * after five minutes: then everything is read again, in larger pages. Rejects as `list` of the client does.
 */
export async function listPages<T>(
  client: Pick<ClusterClient, 'list'>,
  resource: Resource,
  { limit = PAGE_SIZE, ...options }: Omit<ListOptions, 'continueToken'>,
  pick: (object: KubeObject) => T,
): Promise<T[]> {
  let pageSize = limit;
  let restarts = 0;
  let picked: T[] = [];
  for (let continueToken: string | undefined = ''; continueToken !== undefined;) {
    try {
      const page = await client.list(resource, { ...options, limit: pageSize, continueToken });
      for (const object of page.items) picked.push(pick(object));
      continueToken = page.continueToken === '' ? undefined : page.continueToken;
    } catch (error) {
      if (error instanceof ResponseTooLargeError && pageSize > 1) {
        pageSize = Math.floor(pageSize / 2);
      } else if (isExpired(error) && continueToken !== '' && restarts < RESTARTS_MAX) {
        restarts += 1;
        pageSize = limit * 4 ** restarts;
        continueToken = '';
        picked = [];
      } else throw error;
    }
  }
  return picked;
}

function isExpired(error: unknown): boolean {
  return error instanceof StatusError && error.code === 410;
}
