/** Integers and booleans in a query, parsed as a kube-apiserver does. */

import { badRequest } from '../status.ts';

const INT64_MAX = 2n ** 63n - 1n;

/** Undefined without the parameter; throws 400 for anything but an int64. Not exact beyond 2^53. */
export function integerIn(query: URLSearchParams, name: string): number | undefined {
  const text = query.get(name);
  if (text === null) return undefined;
  const isInteger = /^[+-]?\d+$/.test(text);
  if (isInteger && isInt64(BigInt(text.replace('+', '')))) return Number(text);
  const why = isInteger ? 'value out of range' : 'invalid syntax';
  throw badRequest(`strconv.ParseInt: parsing ${JSON.stringify(text)}: ${why}`);
}

function isInt64(value: bigint): boolean {
  return value <= INT64_MAX && value >= -INT64_MAX - 1n;
}

/** A boolean query parameter as Go parses it: present and empty is true. */
export function isTrue(value: string | null): boolean {
  return value !== null && value !== 'false' && value !== '0';
}
