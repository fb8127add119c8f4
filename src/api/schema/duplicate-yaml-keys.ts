/** Keys that a YAML map has twice: the parser keeps the last one silently, a Kubernetes server says so. */

import { isScalar, visit, type Document, type LineCounter } from 'yaml';
import { FIELD_PROBLEMS_MAX } from '../limits.ts';

/** One line of text for each, as a Kubernetes server words it. The parser's own check compares all keys of a map with each other. */
export function duplicateYamlKeys(document: Document.Parsed, lines: LineCounter): string[] {
  const found: string[] = [];
  visit(document, {
    Map: (_key, { items }) => {
      const seen = new Set<string>();
      for (const { key } of items) {
        if (!isScalar(key)) continue;
        const name = String(key.value);
        if (seen.has(name) && found.length < FIELD_PROBLEMS_MAX) {
          const { line } = lines.linePos(key.range?.[0] ?? 0);
          found.push(`line ${line}: key ${JSON.stringify(name)} already set in map`);
        }
        seen.add(name);
      }
    },
  });
  return found;
}
