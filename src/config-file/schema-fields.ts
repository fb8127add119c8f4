/** Types of configuration fields, each with its error messages and the pattern that an editor can check. */

import * as z from 'zod';
import type { SectionRule } from './rule.ts';
import { BIND_ADDRESS_PATTERN, parseBindAddress } from '../base/bind-address.ts';
import {
  DURATION_PATTERN,
  formatBytes,
  formatDuration,
  parseBytes,
  parseDuration,
  QUANTITY_PATTERN,
  TEXT_MAX,
} from './units.ts';

export function text(description: string, fallback = '') {
  return z.string().default(fallback).meta({ description });
}

const HOST = String.raw`([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?`;

/** A URL without user, query and fragment, or '' for none. `scheme`: a regular expression. */
export function url(description: string, scheme: string, what: string) {
  const pattern = String.raw`^(${scheme}://${HOST}(/[^\s?#@]*)?)?$`;
  const isValid = (value: string): boolean =>
    value === '' || (new RegExp(pattern, 'u').test(value) && URL.canParse(value));
  // The value may have a password, so it is not shown.
  return z.string().refine(isValid, `must be ${what}`).default('').meta({ description, pattern });
}

/** A closed section, in which every field has a default. `description`: '' for none. */
export function section<T extends z.core.$ZodShape>(description: string, fields: T) {
  return filledIn(z.strictObject(fields), description);
}

/** A section of vCluster's format, with keys that are not read here. */
export function openSection<T extends z.core.$ZodShape>(description: string, fields: T) {
  return filledIn(z.looseObject(fields), description);
}

function filledIn<T extends z.ZodType>(fields: T, description: string) {
  const absent = fields.prefault({} as never); // as every field has a default
  return description === '' ? absent : absent.meta({ description });
}

/** The section with a rule between its fields. */
export function withRule<T extends z.ZodType>(fields: T, { schema, check }: SectionRule<z.output<T>>): T {
  return fields
    .superRefine((value, context) => {
      for (const finding of check(value))
        context.addIssue({
          code: 'custom',
          message: finding.message,
          path: [...finding.path],
          params: { finding },
        });
    })
    .meta({ ...schema });
}

export function texts(description: string) {
  return z.array(z.string()).default([]).meta({ description });
}

const PATHS = z.registry<{ readonly isPath: true }>();

/** The path of a file or folder. A relative one in the file is relative to the file. */
export function path(description: string, fallback = '') {
  const field = fallback === '' ? z.string() : z.string().min(1);
  return field.default(fallback).meta({ description }).register(PATHS, { isPath: true });
}

export function isPath(schema: unknown): boolean {
  return schema instanceof z.ZodType && PATHS.has(schema);
}

export function flag(description: string, fallback: boolean) {
  return z.boolean().default(fallback).meta({ description });
}

export function choice<const T extends readonly [string, ...string[]]>(
  description: string,
  words: T,
  fallback: T[number],
) {
  return z.enum(words).prefault(fallback).meta({ description });
}

/** The error of text that does not match a pattern. */
export function wanted(what: string) {
  return { error: (issue: { readonly input?: unknown }) => `must be ${what}, found ${show(issue.input)}` };
}

/** Text of this pattern, or '' for none, which the pattern allows too. */
export function optionalMatch(description: string, pattern: RegExp, what: string) {
  return z.string().regex(pattern, wanted(what)).default('').meta({ description });
}

export function count(description: string, limits: { min: number; max: number }, fallback: number) {
  return z.int().min(limits.min).max(limits.max).default(fallback).meta({ description });
}

/** A length of time, read into milliseconds. */
export function duration(description: string, limits: { minMs: number; maxMs: number }, fallback: string) {
  const wanted = 'must be a duration such as 100ms, 15s or 1m30s';
  return z
    .string({ error: (issue) => `${wanted}, found ${show(issue.input)}` })
    .meta({ description, pattern: DURATION_PATTERN, maxLength: TEXT_MAX })
    .transform((value, context) => {
      const durationMs = parseDuration(value);
      if (durationMs !== undefined && durationMs >= limits.minMs && durationMs <= limits.maxMs)
        return durationMs;
      const range = `between ${formatDuration(limits.minMs)} and ${formatDuration(limits.maxMs)}`;
      context.addIssue(
        durationMs === undefined
          ? `${wanted}, found ${show(value)}${withoutDays(value)}`
          : `must be ${range}, found ${show(value)}`,
      );
      return z.NEVER;
    })
    .prefault(fallback);
}

/** Go's durations have no days: the error message gives the same duration in hours. */
function withoutDays(text: string): string {
  const days = Number(/^(\d{1,5}) ?(?:d|days?)$/u.exec(text)?.[1] ?? 0);
  return days === 0 ? '' : `: d is not a unit, write ${days * 24}h`;
}

/** An amount of memory, read into bytes. */
export function size(description: string, limits: { min: number; max: number }, fallback: string) {
  const wanted = 'must be a size such as 64Mi or 1G';
  return z
    .union(
      [
        z.string().meta({ pattern: QUANTITY_PATTERN, maxLength: TEXT_MAX }),
        z.number().meta({ minimum: limits.min, maximum: limits.max }),
      ],
      {
        error: (issue) => `${wanted}, found ${show(issue.input)}`,
      },
    )
    .meta({ description })
    .transform((value, context) => {
      const bytes = parseBytes(String(value));
      if (bytes !== undefined && bytes >= limits.min && bytes <= limits.max) return bytes;
      const range = `between ${formatBytes(limits.min)} and ${formatBytes(limits.max)}`;
      context.addIssue(
        bytes === undefined ? `${wanted}, found ${show(value)}` : `must be ${range}, found ${show(value)}`,
      );
      return z.NEVER;
    })
    .prefault(fallback);
}

/** `host:port` to listen on. */
export function bindAddress(description: string, fallback: string) {
  return z
    .string()
    .refine(
      (value) => parseBindAddress(value) !== undefined,
      wanted('HOST:PORT such as 127.0.0.1:8080, [::1]:8080 or :8080'),
    )
    .prefault(fallback)
    .meta({ description, pattern: BIND_ADDRESS_PATTERN });
}

const SHOWN_MAX = 60;

/** A value in a message: short, quoted when it is text. */
export function show(value: unknown): string {
  if (typeof value === 'string') {
    return JSON.stringify(value.length > SHOWN_MAX ? `${value.slice(0, SHOWN_MAX)}…` : value);
  }
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'object' && value !== null) return 'a mapping';
  return String(value);
}
