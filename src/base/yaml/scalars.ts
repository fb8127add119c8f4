/** What kubectl, Helm and vCluster read unquoted text as: sigs.k8s.io/yaml 1.6, which is YAML 1.1 with differences. */

/** `int`: of 64 bits, signed or not. A bigint is one that no number holds exactly. */
export type PlainScalar =
  | { readonly type: 'null'; readonly value: null }
  | { readonly type: 'bool'; readonly value: boolean }
  | { readonly type: 'int' | 'float'; readonly value: number | bigint }
  | { readonly type: 'text'; readonly value: string };

const NULL = /^(?:|~|[Nn]ull|NULL)$/;
const TRUE = /^(?:[Yy]|[Yy]es|YES|[Tt]rue|TRUE|[Oo]n|ON)$/;
const FALSE = /^(?:[Nn]|[Nn]o|NO|[Ff]alse|FALSE|[Oo]ff|OFF)$/;
const INFINITY = /^([-+]?)\.(?:inf|Inf|INF)$/;
const NAN = /^\.(?:nan|NaN|NAN)$/;
const INTEGER = /^([-+]?)(0[xX][0-9a-fA-F]+|0[oO]?[0-7]+|0[bB][01]+|0|[1-9][0-9]*)$/;
const FLOAT = /^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$/;
/** More decimal digits than 64 bits have; reading them would take time that grows with the square of their number. */
const DIGITS_MAX = 20;

export function readScalar(source: string): PlainScalar {
  const text = { type: 'text', value: source } as const;
  if (!/^(?:[-+.~\d]|[yYnNtTfFoO]|$)/.test(source)) return text;
  if (NULL.test(source)) return { type: 'null', value: null };
  if (TRUE.test(source)) return { type: 'bool', value: true };
  if (FALSE.test(source)) return { type: 'bool', value: false };
  if (NAN.test(source)) return { type: 'float', value: Number.NaN };
  const infinite = INFINITY.exec(source);
  if (infinite !== null) return { type: 'float', value: infinite[1] === '-' ? -Infinity : Infinity };
  if (!/^[-+.\d]/.test(source)) return text;
  // As it is there: only after a point, an underscore has to separate digits.
  if (source.startsWith('.') && /(?<!\d)_|_(?!\d)/.test(source)) return text;
  const plain = source.replaceAll('_', '');
  return integerIn(plain) ?? floatIn(plain) ?? text;
}

function integerIn(plain: string): PlainScalar | undefined {
  // As it is there: of binary numbers, the sign may be in the middle.
  const [, sign, digits = ''] =
    INTEGER.exec(plain.replace(/^0b([-+])/, (_, sign: string) => `${sign}0b`)) ?? [];
  if (sign === undefined || (digits.length > DIGITS_MAX && !digits.startsWith('0'))) return undefined;
  const size = BigInt(/^0[0-7]+$/.test(digits) ? `0o${digits.slice(1)}` : digits.toLowerCase());
  const isInt64 = size <= (sign === '-' ? 2n ** 63n : 2n ** 63n - 1n);
  if (!isInt64 && (sign !== '' || size >= 2n ** 64n)) return undefined;
  const value = sign === '-' ? -size : size;
  return { type: 'int', value: Number.isSafeInteger(Number(value)) ? Number(value) : value };
}

function floatIn(plain: string): PlainScalar | undefined {
  const value = FLOAT.test(plain) ? Number(plain) : Infinity;
  return Number.isFinite(value) ? { type: 'float', value } : undefined;
}

/** The member of a JSON object that an unquoted key is; undefined if it cannot be one. */
export function keyOfScalar(source: string): string | undefined {
  const { type, value } = readScalar(source);
  switch (type) {
    case 'null':
      return undefined;
    case 'bool':
    case 'text':
      return String(value);
    case 'int':
      return value < 2n ** 63n ? String(value) : undefined;
    case 'float':
      return float32Text(Number(value));
  }
}

/** Go's `strconv.FormatFloat(value, 'g', -1, 32)`; undefined for zero, which has two signs, and for what takes more than seven digits or 32 bits. */
function float32Text(value: number): string | undefined {
  const float = Math.fround(value);
  if (!Number.isFinite(float) || float === 0) return undefined;
  const shortest = [0, 1, 2, 3, 4, 5, 6]
    .map((places) => float.toExponential(places))
    .find((text) => Math.fround(Number(text)) === float);
  if (shortest === undefined) return undefined;
  const [digits = '', power = ''] = shortest.split('e');
  const exponent = Number(power);
  if (exponent >= -4 && exponent < 6) return String(Number(shortest));
  return `${digits}e${exponent < 0 ? '-' : '+'}${String(Math.abs(exponent)).padStart(2, '0')}`;
}

/** Numbers, dates and times of YAML 1.1 and 1.2 in the spelling of any reader. */
const NUMBER_LIKE =
  /^[-+]?(?:0[xX][0-9a-fA-F_]*|0[oO][0-7_]*|0[bB][-+01_]*|[0-9][0-9_]*(?::[0-9_]+)*(?:\.[0-9_]*)?(?:[eE][-+]?[0-9_]*)?|\.[0-9_]*(?:[eE][-+]?[0-9_]*)?|[eE][-+]?[0-9_]+|\.[iI][nN][fF]|\.[nN][aA][nN])$/;
const DATE_LIKE = /^\d{4}-\d{1,2}-\d{1,2}/;
const WORDS = /^(?:y|yes|n|no|on|off|true|false|null|~|<<|=|)$/i;

/** Whether a reader of YAML 1.1 or 1.2 takes this unquoted text for another value than the text. */
export function isAmbiguous(text: string): boolean {
  return (
    WORDS.test(text) || NUMBER_LIKE.test(text) || DATE_LIKE.test(text) || readScalar(text).type !== 'text'
  );
}
