/**
 * What `stack` is in the realm: the error's own text, without frames, because they would show the host's code and numbers that differ from
 * one process to the next. Where the error was made is kept for the host alone. Runs inside the isolate: no imports that are more than
 * types.
 */

interface CallSite {
  getFileName(): string | null;
  getLineNumber(): number | null;
  getColumnNumber(): number | null;
}

/** A place in a program's source, 1-based. */
export type ErrorPlace = readonly [line: number, column: number];

const PROGRAM = 'program-';

/** V8 calls `prepareStackTrace` when `stack` is first read. It stays visible, but nothing can replace it. */
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
    // What an expression passes in has no such methods.
    if (typeof site?.getFileName !== 'function' || !site.getFileName()?.startsWith(PROGRAM)) continue;
    return [site.getLineNumber() ?? 0, site.getColumnNumber() ?? 0];
  }
  return undefined;
}
