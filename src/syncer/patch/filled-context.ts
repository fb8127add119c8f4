/** Objects whose lists are filled once they are read. */

import type { JsonObject } from '../../base/json.ts';
import { Budget } from '../sandbox/local/budget.ts';
import { withEmptyLists } from './empty-lists.ts';
import type { PatchContext } from './types.ts';

export class FilledContext implements PatchContext {
  readonly objectNamespace: string;
  readonly budget: Budget;
  readonly #stored: PatchContext;
  #hostObject: JsonObject | null | undefined;
  #virtualObject: JsonObject | null | undefined;

  constructor(stored: PatchContext) {
    this.objectNamespace = stored.objectNamespace;
    this.budget = stored.budget ?? new Budget();
    this.#stored = stored;
  }

  get hostObject(): JsonObject | null {
    const { hostObject } = this.#stored;
    return (this.#hostObject ??= hostObject && withEmptyLists(hostObject));
  }

  get virtualObject(): JsonObject | null {
    const { virtualObject } = this.#stored;
    return (this.#virtualObject ??= virtualObject && withEmptyLists(virtualObject));
  }
}
