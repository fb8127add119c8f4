/** Removes the frames from `stack`, because they would reveal code of the host and numbers that differ between processes. The position of the
 * error is kept for the host only. Runs inside the isolate: only type imports.
 */

interface CallSite {
  getFileName(): string | null;
  getLineNumber(): number | null;
  getColumnNumber(): number | null;
}

/** A place in a program's source, 1-based. */
export type ErrorPlace = readonly [line: number, column: number];

const PROGRAM = 'program-';

/** V8 calls `prepareStackTrace` when `stack` is first read. Expressions can see it but not replace it. */
export function hideStacks(): WeakMap<object, ErrorPlace> {
  const places = new WeakMap<object, ErrorPlace>();
  const prepareStackTrace = (error: unknown, sites: unknown): string => {
    if (Array.isArray(sites) && typeof error === 'object' && error !== null) {
      const place = placeOf(sites as readonly CallSite[]);
      if (place !== undefined) places.set(error, place);
    }
    return Error.prototype.toString.call(error);
  };
  Object.defineProperty(Error, 'prepareStackTrace', { value: prepareStackTrace });
  return places;
}

function placeOf(sites: readonly CallSite[]): ErrorPlace | undefined {
  for (let i = 0; i < sites.length; i++) {
    const site = sites[i];
    // An expression can call this function with other objects.
    if (typeof site?.getFileName !== 'function' || !site.getFileName()?.startsWith(PROGRAM)) continue;
    return [site.getLineNumber() ?? 0, site.getColumnNumber() ?? 0];
  }
  return undefined;
}
