/** Versions of objects of one API server. */

/**
 * Negative when `a` is older than `b`, 0 when equal, positive when newer; undefined when they cannot be compared. Kubernetes'
 * versions are decimal numbers of any length that grow; another server's may be anything.
 */
export function compareVersions(a: string | undefined, b: string | undefined): number | undefined {
  if (a === b) return a === undefined ? undefined : 0;
  if (a === undefined || b === undefined || !NUMBER.test(a) || !NUMBER.test(b)) return undefined;
  if (a.length !== b.length) return a.length - b.length;
  return a < b ? -1 : 1;
}

const NUMBER = /^(0|[1-9]\d*)$/;

/** False if the versions cannot be compared. */
export function isOlder(a: string | undefined, b: string | undefined): boolean {
  const order = compareVersions(a, b);
  return order !== undefined && order < 0;
}
