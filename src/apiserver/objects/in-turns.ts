/** Long lists are processed in several turns of the event loop, so that other requests are served in between. */

/** Testing or serializing this many objects takes about 10 ms. */
export const ITEMS_PER_TURN = 2000;

/** The items that match, in order; at most `max`. */
export async function filterInTurns<Item>(
  items: readonly Item[],
  matches: (item: Item) => boolean,
  max: number,
): Promise<Item[]> {
  const found: Item[] = [];
  for (const [index, item] of items.entries()) {
    if (index % ITEMS_PER_TURN === ITEMS_PER_TURN - 1) await nextTurn();
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
    if (index % ITEMS_PER_TURN === ITEMS_PER_TURN - 1) await nextTurn();
    results.push(map(item));
  }
  return results;
}

export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
