/** Writes YAML: every reader of YAML 1.1 or 1.2, such as kubectl and Helm, and this program read the same value again. */

import {
  type Document,
  isScalar,
  parseDocument,
  stringify,
  visit,
  type CreateNodeOptions,
  type SchemaOptions,
  type ToStringOptions,
} from 'yaml';
import type { JsonValue } from '../json.ts';
import { keyOfScalar } from './scalars.ts';
import { SORTED_SCHEMA, YAML_SCHEMA } from './schema.ts';

interface Style {
  /** Keys in alphabetical order, as kubectl prints them. */
  readonly isSorted?: boolean;
  /** On one line, as far as texts allow. */
  readonly isFlow?: boolean;
}

export function writeYaml(value: JsonValue, { isSorted = false, isFlow = false }: Style = {}): string {
  const options: SchemaOptions & CreateNodeOptions & ToStringOptions = {
    schema: isSorted ? SORTED_SCHEMA : YAML_SCHEMA,
    lineWidth: 0,
    aliasDuplicateObjects: false,
    collectionStyle: isFlow ? 'flow' : 'any',
  };
  return stringify(value, options);
}

/** A document that is edited and written with its comments and styles; its keys are what they are in JSON. `text` is one that was read. */
export function editableYaml(text: string): Document.Parsed {
  const document = parseDocument(text, { schema: YAML_SCHEMA, uniqueKeys: false, logLevel: 'silent' });
  visit(document, {
    Pair(_, { key }) {
      if (isScalar(key) && typeof key.value !== 'string') key.value = keyOfScalar(key.source ?? '') ?? '';
    },
  });
  return document;
}
