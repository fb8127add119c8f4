/** One entry of `patches`: its fields, its types, and the rules between its members. */

import * as z from 'zod';
import { isJsonObject, ownValue, type JsonObject } from '../../base/json.ts';
import {
  errorAtKey,
  formatPath,
  isSet,
  textMember,
  type ConfigPath,
  type Finding,
} from '../../config-file/finding.ts';
import { areSet, requires } from '../../config-file/rule.ts';

/** The modes, each with the members of an entry that choose it, and what these hold. */
const MODES: readonly (readonly [members: readonly string[], holds: 'text' | 'object'])[] = [
  [['expression', 'reverseExpression'], 'text'],
  [['reference'], 'object'],
  [['labels'], 'object'],
];

function namedModes(): string {
  const names = MODES.flatMap(([[name = '']]) => name).toSorted();
  return `${names.slice(0, -1).join(', ')} or ${names.at(-1)}`;
}

/** A rule between the members of one entry at `path`. */
interface EntryRule {
  readonly schema: JsonObject;
  readonly check: (entry: JsonObject, path: ConfigPath) => readonly Finding[];
}

export const ONE_MODE = {
  schema: {
    oneOf: MODES.map(([members, holds]) => {
      const any = members.map((member) => (holds === 'text' ? areSet(member) : { required: [member] }));
      return any.length > 1 ? { anyOf: any } : { ...any[0] };
    }),
  },
  check(entry, path) {
    const hasText = (key: string): boolean => (textMember(entry, key) ?? '') !== '';
    const used = MODES.filter(([members, holds]) =>
      members.some((member) => (holds === 'text' ? hasText(member) : isSet(entry, member))),
    ).length;
    const where = formatPath(path);
    if (used > 1) return [errorAtKey(path, `${where} can only use one of: ${namedModes()}`)];
    if (used === 1) return [];
    // A member of the wrong type has its own finding, and it would be wrong to report that it is missing.
    const isMeant = MODES.some(
      ([members, holds]) =>
        holds === 'text' && members.some((key) => isSet(entry, key) && textMember(entry, key) === undefined),
    );
    if (isMeant) return [];
    const hint = Object.hasOwn(entry, 'labels')
      ? ' (an empty "labels:" counts as not set, write labels: {})'
      : ownValue(entry, 'expression') === null
        ? ` (null counts as not set, write expression: "null" for an expression that deletes what the path matches)`
        : '';
    const missing = MODES.flatMap(([members]) => members.map((key) => [...path, key]));
    return [{ ...errorAtKey(path, `${where} need to use one of: ${namedModes()}${hint}`), missing }];
  },
} satisfies EntryRule;

/** With `namespacePath` alone only a namespace is rewritten: such a reference names no object. */
export const WHOLE_REFERENCE = {
  schema: { allOf: [requires('kindPath', 'namePath'), requires('apiVersionPath', 'namePath')] },
  check(entry, path) {
    const reference = ownValue(entry, 'reference');
    if (!isJsonObject(reference) || isSet(reference, 'namePath')) return [];
    return ['kindPath', 'apiVersionPath']
      .filter((key) => isSet(reference, key))
      .map((key) =>
        errorAtKey(
          [...path, 'reference', key],
          `namePath is required with ${key}: set it to the path of the name`,
        ),
      );
  },
} satisfies EntryRule;

/** An empty text counts as absent. */
function optionalText(description: string) {
  return z
    .string()
    .transform((text) => (text === '' ? undefined : text))
    .optional()
    .meta({ description });
}

const relativePath = (what: string) =>
  optionalText(`Path of the ${what}, relative to what \`path\` matched.`);

const referenceSchema = z
  .strictObject({
    apiVersion: z
      .string()
      .regex(/^([a-z0-9.-]+\/)?[a-z0-9]([a-z0-9-]*[a-z0-9])?$/u, {
        error: 'must be VERSION or GROUP/VERSION, such as v1 or apps/v1',
      })
      .meta({ description: 'apiVersion of the referenced object, such as v1 or apps/v1.' }),
    kind: z
      .string()
      .regex(/^[A-Za-z][A-Za-z0-9]*$/u, { error: 'must be a kind, such as Secret' })
      .meta({ description: 'Kind of the referenced object, such as Secret.' }),
    apiVersionPath: relativePath('apiVersion; if it is not found, `apiVersion` is used'),
    kindPath: relativePath('kind; if it is not found, `kind` is used'),
    namePath: relativePath(
      'name, `[*].name` for each element of a list; if omitted, the matched value itself is the name',
    ),
    namespacePath: relativePath("namespace; if it is not found, the object's own namespace is used"),
  })
  .meta({
    id: 'Reference',
    description: 'The value references another object; the reference is translated.',
    ...WHOLE_REFERENCE.schema,
  });

/** One entry of `patches`. */
export const patchSchema = z
  .strictObject({
    path: z.string().meta({
      description:
        'What to change, such as metadata.annotations["example.com/key"] or subsets[*].addresses[*].ip. A filter selects elements: [?(@.name === "https")].',
      examples: [
        'metadata.annotations["example.com/key"]',
        'subsets[*].addresses[*].hostname',
        'subsets[*].ports[?(@.name === "https")].port',
        'metadata.annotations[?(@.includes("{{"))]',
      ],
    }),
    expression: optionalText(
      'JavaScript, virtual to host: `value` is the current value, the result replaces it.',
    ),
    reverseExpression: optionalText('JavaScript, host to virtual: undoes `expression`.'),
    reference: referenceSchema.optional(),
    labels: z
      .strictObject({})
      .optional()
      .meta({ description: 'Write `labels: {}`: the value is a label selector, its keys are translated.' }),
  })
  .meta({
    id: 'Patch',
    description: 'One change. Exactly one of: expression and/or reverseExpression, reference, labels.',
    ...ONE_MODE.schema,
  });

/** One entry of `patches`: exactly one mode is set. */
export type PatchConfig = z.output<typeof patchSchema>;

export type ReferenceConfig = NonNullable<PatchConfig['reference']>;
