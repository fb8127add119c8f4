/** Rules between fields. Where JSON Schema can express one, its schema stands beside the check, so that an editor rejects what the loader rejects. */

import type { JsonObject } from '../base/json.ts';
import { errorAtValue, type Fields, type Finding } from './finding.ts';
import { formatDuration } from './units.ts';

/** A rule between the fields of one section, which is part of its schema and holds wherever the section stands. */
export interface SectionRule<T> {
  /** Absent if JSON Schema cannot express it. */
  readonly schema?: JsonObject;
  /** Gets the section with its defaults, and returns paths below it. */
  readonly check: (section: T) => readonly SectionFinding[];
}

export interface SectionFinding extends Finding {
  /** The other field that the finding is about: the place if the file has this one only. */
  readonly other?: string;
}

/** A rule between sections. */
export interface Rule {
  readonly schema?: JsonObject;
  /** Reads the file as written, so that one invalid field does not hide another. */
  readonly check: (fields: Fields) => readonly Finding[];
}

/** The first duration must not be longer than the second one. JSON Schema cannot compare them. */
export function ordered<K extends string>(shorter: K, longer: K): SectionRule<Readonly<Record<K, number>>> {
  return {
    check({ [shorter]: low, [longer]: high }) {
      if (!(low > high)) return [];
      const message = `${shorter} (${formatDuration(low)}) must not be longer than ${longer} (${formatDuration(high)})`;
      return [{ ...errorAtValue([longer], message), other: shorter }];
    },
  };
}

// Parts of a JSON Schema. Patterns have no lookahead: Helm checks the chart's values with Go's regular expressions.

/** Holds if all these members are present and not empty. */
export function areSet(...members: readonly string[]): JsonObject {
  const properties = Object.fromEntries(members.map((member) => [member, { minLength: 1 }]));
  return { required: [...members], properties };
}

export function requires(member: string, other: string): JsonObject {
  return implies(areSet(member), areSet(other));
}

/** `if` and `then` without an object that looks like a promise. */
export function implies(condition: JsonObject, rule: JsonObject): JsonObject {
  return { anyOf: [{ not: condition }, rule] };
}

export function within(path: readonly string[], rule: JsonObject): JsonObject {
  return path.reduceRight<JsonObject>(
    (inner, member) => ({ required: [member], properties: { [member]: inner } }),
    rule,
  );
}

export const IS_ON = { required: ['enabled'], properties: { enabled: { const: true } } };
