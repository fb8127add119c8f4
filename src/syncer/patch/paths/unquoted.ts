/** Unquoted names and brackets in a path, and the error messages for invalid ones. */

/** A list index: no leading zeros, at most ten digits. */
export function isIndex(text: string): boolean {
  return /^(?:0|[1-9]\d{0,9})$/.test(text);
}

/** The error for a name that is not allowed without quotes; undefined if it is allowed. */
export function plainNameProblem(name: string): string | undefined {
  if (name === '') return 'an empty name needs quotes: ""';
  if (name.startsWith('?')) return `filters such as ${show(name)} are not supported`;
  if (name.startsWith('(')) return `scripts such as ${show(name)} are not supported`;
  if (name.trim() !== name) return 'a name with blanks at its edge needs quotes';
  if (/[.[\]]/.test(name)) return 'a name that holds ".", "[" or "]" needs quotes';
  if (name.includes('"') || name.startsWith("'"))
    return 'a name that holds a quote needs quotes around all of it';
  if (name.startsWith('@'))
    return `type selectors such as ${show(name)} are not supported; quote it if it is a key`;
  if (name.endsWith('()'))
    return `functions such as ${show(name)} are not supported; quote it if it is a key`;
  if (name.includes(','))
    return `unions such as ${show(name)} are not supported; quote it if the comma is part of the key`;
  if (name.includes('*')) return `a wildcard stands alone; quote ${show(name)} if the * is part of the key`;
  if (/^-?\d*:-?\d*(?::-?\d*)?$/.test(name)) return `slices such as ${show(name)} are not supported`;
  if (/^-\d+$/.test(name))
    return `negative indices such as ${show(name)} are not supported; quote it if it is a key`;
  if (/[\^~]$/.test(name))
    return `the operator at the end of ${show(name)} is not supported; quote it if it is part of the key`;
  if (name === '$') return '"$" may only stand at the start';
  return undefined;
}

/** The error for text that is not allowed in a bracket without quotes; undefined for an index and `*`. */
export function bracketProblem(text: string): string | undefined {
  if (text === '*') return undefined;
  if (isIndex(text)) return undefined;
  if (text.startsWith('?')) return `filters such as ${show(`[${text}]`)} are not supported`;
  if (text.startsWith('(')) return `scripts such as ${show(`[${text}]`)} are not supported`;
  if (/^-?\d*\s*:/.test(text)) return `slices such as ${show(`[${text}]`)} are not supported`;
  if (/^-\d+$/.test(text)) return `negative indices such as ${show(`[${text}]`)} are not supported`;
  if (text.includes('[')) return `unexpected bracket in bracket: ${show(`[${text}]`)}`;
  if (text.includes(',')) return `unions such as ${show(`[${text}]`)} are not supported`;
  if (/^\d+$/.test(text)) return `${show(text)} is not an index: no leading zeros, at most ten digits`;
  return `a key in brackets needs quotes: ["${text.length > 40 ? '…' : text.replaceAll('"', '\\"')}"]`;
}

/** A part of the path for a message, of limited length. */
export function show(part: string): string {
  return JSON.stringify(part.length > 40 ? `${part.slice(0, 40)}…` : part);
}
