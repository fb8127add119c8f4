/** A text as YAML, with its problems as `LINE:COLUMN MESSAGE`. */

import { readDocument } from '../../src/config-file/document.ts';
import { positionOf } from '../../src/config-file/source-file.ts';

export function read(text: string): { value: unknown; problems: string[]; isReadable: boolean } {
  const { value, problems, source, isReadable } = readDocument('f', text);
  const places = problems.map(({ offset, message }) => {
    const { line, column } = positionOf(source, offset);
    return `${line}:${column} ${message}`;
  });
  return { value, problems: places, isReadable };
}
