/** Documents that need no credential: those for verifiers of tokens, and those that a kube-apiserver serves to unauthenticated clients. */

import { textResponse, type ApiResponse } from '../../apiserver/http/api-response.ts';
import { MetaHandler, type ServerVersion } from '../../apiserver/request/meta-handler.ts';
import type { DefinitionTable } from '../../apiserver/objects/definition-table.ts';
import { noSuchResource } from '../../apiserver/status.ts';
import type { Store } from '../../apiserver/storage/store.ts';

export interface PublicDocumentsOptions {
  readonly table: DefinitionTable;
  readonly version: ServerVersion;
  readonly store: Store;
  /** By path. */
  readonly documents: ReadonlyMap<string, () => Promise<ApiResponse>>;
}

type Document = () => Promise<ApiResponse>;

export function publicDocuments({
  table,
  version,
  store,
  documents,
}: PublicDocumentsOptions): ReadonlyMap<string, Document> {
  const meta = new MetaHandler(table, version);
  const served =
    (path: string): Document =>
    async () => {
      const query = new URLSearchParams();
      const answer = meta.handle({ method: 'GET', path, query, accept: undefined, ifNoneMatch: undefined });
      if (!answer) throw noSuchResource();
      return answer;
    };
  return new Map([
    ...documents,
    ['/version', served('/version')],
    ['/livez', served('/livez')],
    // Not of the store: a restart, which a liveness probe causes, does not free a full disk.
    ['/healthz', served('/healthz')],
    ['/readyz', () => readiness(store)],
  ]);
}

/** Ready: the store can be read and written. */
async function readiness(store: Store): Promise<ApiResponse> {
  try {
    await store.revision();
    await store.checkWritable();
    return textResponse(200, 'ok');
  } catch {
    return textResponse(503, 'the store is not writable\n');
  }
}
