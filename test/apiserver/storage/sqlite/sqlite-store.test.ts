/** The SQLite driver fulfils the contract of the store. */

import { join } from 'node:path';
import { afterAll } from 'vitest';
import { SqliteStore } from '../../../../src/apiserver/storage/sqlite/sqlite-store.ts';
import { storeContract } from '../store-contract.ts';
import { temporaryFolder } from '../temporary-folder.ts';

const folder = temporaryFolder();
let files = 0;
afterAll(() => folder[Symbol.dispose]());

storeContract(
  'sqlite',
  (historyLimit) =>
    SqliteStore.open({
      file: join(folder.path, `${++files}`, 'management.db'),
      ...(historyLimit === undefined ? {} : { historyLimit }),
    }),
  { compact: async (store) => store.compact(await store.revision()) },
);
