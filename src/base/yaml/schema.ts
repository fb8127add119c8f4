/** The tags of every YAML text that this program reads or writes. */

import { Scalar, Schema, type ScalarTag } from 'yaml';
import { mapTag, seqTag, stringifyNumber, stringifyString, stringTag } from 'yaml/util';
import { isAmbiguous, keyOfScalar, readScalar, type PlainScalar } from './scalars.ts';

const PREFIX = 'tag:yaml.org,2002:';

/** Unquoted text without a tag, where it is no text; and the values that are written without quotes. */
const PLAIN: ScalarTag = {
  tag: `${PREFIX}plain`,
  default: true,
  test: { test: (source: string) => readScalar(source).type !== 'text' } as RegExp, // all that is called of it
  resolve: (source) => readScalar(source).value,
  identify: (value) => value === null || ['boolean', 'number', 'bigint'].includes(typeof value),
  stringify(item) {
    const { value, source } = item;
    // As it is written in the file.
    if (source !== undefined && Object.is(readScalar(source).value, value)) return source;
    return typeof value === 'number' || typeof value === 'bigint' ? stringifyNumber(item) : String(value);
  },
};

/** A tag that demands a type, of quoted text too. */
function typeTag(type: PlainScalar['type']): ScalarTag {
  return {
    tag: PREFIX + type,
    resolve(source, onError) {
      const read = readScalar(source);
      if (read.type === type || (type === 'float' && read.type === 'int')) return read.value;
      onError(`the value is not of the type !!${type}`);
      return source;
    },
  };
}

/** What some reader of YAML refuses, or takes for a line break, and what changes the direction of the text around it. */
const UNUSUAL =
  /(?![\t\n])\p{Cc}|[\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff\ufffe\uffff]/u;
/** Blanks at the start or end of lines, and more than one line break at the end, are not kept by all editors, and need indicators. */
const NOT_IN_BLOCK = /^[ \t\n]|[ \t]$|[ \t]\n|\n\n$/;
/** In a flow collection, the versions of YAML differ in what else needs no quotes. */
const PLAIN_IN_FLOW = /^[\w./](?:[\w./ -]*[\w./-])?$/;

const TEXT: ScalarTag = {
  ...stringTag,
  stringify(item, context, ...rest) {
    const text = String(item.value).toWellFormed();
    // A key such as `8080` in a file that is edited.
    const { source, type: style } = item;
    if (
      context.implicitKey === true &&
      style === Scalar.PLAIN &&
      source !== undefined &&
      keyOfScalar(source) === text
    )
      return source;
    const isBlock = text.includes('\n') && context.implicitKey !== true && context.inFlow !== true;
    const isMark = context.indent === '' && /^(?:---|\.\.\.|%)/.test(text);
    const isOneLine = isBlock && (context.indent === '' || NOT_IN_BLOCK.test(text));
    if (isMark || isOneLine || UNUSUAL.test(text) || text.includes('\t')) return escaped(text);
    const isPlain = style === undefined || style === Scalar.PLAIN;
    if (isPlain && isAmbiguous(text)) return escaped(text);
    const needsQuotes = isPlain && context.inFlow === true && !PLAIN_IN_FLOW.test(text);
    const type = needsQuotes ? Scalar.QUOTE_DOUBLE : style;
    return stringifyString(
      { value: text, comment: item.comment ?? '', ...(type && { type }) },
      context,
      ...rest,
    );
  },
};

/** In double quotes, on one line, with nothing but visible characters. */
function escaped(text: string): string {
  return JSON.stringify(text).replaceAll(
    new RegExp(UNUSUAL, 'gu'),
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

const TYPES = (['null', 'bool', 'int', 'float'] as const).map(typeTag);

function schemaWith(sortMapEntries: boolean): Schema {
  const customTags = [mapTag, seqTag, TEXT, PLAIN, ...TYPES];
  return new Schema({ schema: 'failsafe', customTags: () => customTags, sortMapEntries });
}

export const YAML_SCHEMA = schemaWith(false);
export const SORTED_SCHEMA = schemaWith(true);
