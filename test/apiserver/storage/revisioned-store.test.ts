/** The in-memory driver fulfils the contract of the store. */

import { MemoryStore } from '../../../src/apiserver/storage/revisioned-store.ts';
import { storeContract } from './store-contract.ts';

storeContract(
  'memory',
  async (historyLimit) => new MemoryStore(historyLimit === undefined ? {} : { historyLimit }),
  { compact: async (store) => store.compact(await store.revision()) },
);
