/** What Go's YAML parser, which kubectl, Helm and vCluster use, refuses or reads as something else than the one in use here. */

import { type Document, isCollection, isScalar, Scalar, visit } from 'yaml';

export interface Refusal {
  readonly offset: number;
  readonly message: string;
  /** What is wrong, in two or three words without anything of the text. */
  readonly code: string;
}

/** The first rule that documents without errors break, which are this part of a text. */
export function refusedByGo(
  documents: readonly Document.Parsed[],
  text: string,
  [start, end]: readonly [number, number],
): Refusal | undefined {
  const part = start === 0 && end === text.length ? text : text.slice(start, end);
  const found =
    characterProblem(part) ?? tabProblem(documents, part, start) ?? markProblem(documents, part, start);
  return directiveProblem(documents, start) ?? (found && { ...found, offset: start + found.offset });
}

function directiveProblem(documents: readonly Document.Parsed[], offset: number): Refusal | undefined {
  const isRefused = documents.some(({ warnings, directives: { yaml } }) => {
    const isOther = yaml.explicit === true && yaml.version !== '1.1';
    return isOther || warnings.some(({ code }) => code === 'BAD_DIRECTIVE');
  });
  const message = 'a directive that YAML 1.1 does not have: remove the line that begins with %';
  return isRefused ? { offset, message, code: 'bad directive' } : undefined;
}

const REFUSED = /(?![\t\n\r])\p{Cc}|[\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]|\r(?!\n)/u;
const BREAKS = '\r\u0085\u2028\u2029';

/** Line breaks of Unicode are line breaks there, and control characters errors. What is JSON is read as JSON, which may have both. */
function characterProblem(part: string): Refusal | undefined {
  const found = REFUSED.exec(part);
  if (found === null || isJson(part)) return undefined;
  const name = `U+${(found[0].codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`;
  const why = BREAKS.includes(found[0]) ? 'is a line break to kubectl and Helm' : 'is a control character';
  const message = `the character ${name} ${why}: write it as an escape in double quotes, or remove it`;
  return { offset: found.index, message, code: 'unusual character' };
}

function isJson(text: string): boolean {
  if (!/^\s*[{[]/u.test(text)) return false;
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

const INDENTING_TAB = /^ *(?:[-?:] *)*\t/gm;
/** The first line of a block of text shows its indentation. */
const INDENTED_BY_TAB = /^[^\n]*\n(?:[ \r]*\n)* *\t/;

/** A tab may only stand where nothing could begin: after a key, in quotes and in flow collections. */
function tabProblem(documents: readonly Document.Parsed[], part: string, start: number): Refusal | undefined {
  if (!part.includes('\t')) return undefined;
  const isKept = coverage(documents, (node) =>
    isScalar(node) ? node.type !== Scalar.PLAIN : isCollection(node) && node.flow === true,
  );
  const message = 'a tab cannot indent YAML: use spaces';
  const code = 'tab as indentation';
  let offset: number | undefined;
  for (const document of documents) {
    visit(document, {
      Scalar(_, node) {
        const { range } = node;
        if (!range || !isBlock(node)) return;
        if (INDENTED_BY_TAB.test(part.slice(range[0] - start, range[1] - start))) offset ??= range[0] - start;
      },
    });
  }
  for (const { index, 0: indentation } of part.matchAll(INDENTING_TAB)) {
    const at = index + indentation.length - 1;
    if (!isKept(start + at)) offset ??= at;
  }
  return offset === undefined ? undefined : { offset, message, code };
}

const EARLY_END = /^\s*(?:#[^\n]*\n\s*)*\.\.\.(?:\s|$)/;
/** Between brackets, unquoted text ends there at any `?`, and cannot begin with `:`. */
const ENDS_IN_FLOW = /^:|\?/;

/** A document that ends before it begins; text between brackets that needs quotes. */
function markProblem(
  documents: readonly Document.Parsed[],
  part: string,
  start: number,
): Refusal | undefined {
  if (EARLY_END.test(part))
    return { offset: 0, message: 'the end of a document without a document', code: 'early end' };
  if (/\n[ \t]+$/.test(part.slice(-200)) && coverage(documents, isBlock)(start + part.trimEnd().length))
    return {
      offset: part.length,
      message: 'a last line of blanks in a block of text: remove it',
      code: 'blanks',
    };
  const [block] = documents.filter(({ contents }) => isBlock(contents));
  if (block !== undefined)
    return {
      offset: block.range[0] - start,
      message: 'a block of text that is no value of a key',
      code: 'root block',
    };
  if (!/[[{]/.test(part) || !/[\s[{,]:\S|\?/.test(part)) return undefined;
  const isFlow = coverage(documents, (node) => isCollection(node) && node.flow === true);
  let offset: number | undefined;
  for (const document of documents) {
    visit(document, {
      Scalar(_, { range, source = '', type }) {
        if (type === Scalar.PLAIN && ENDS_IN_FLOW.test(source) && range && isFlow(range[0]))
          offset ??= range[0];
      },
    });
  }
  const message = 'text with "?", or with ":" at its start, needs quotes between brackets';
  return offset === undefined ? undefined : { offset: offset - start, message, code: 'bad scalar start' };
}

function isBlock(node: unknown): boolean {
  return isScalar(node) && (node.type === Scalar.BLOCK_LITERAL || node.type === Scalar.BLOCK_FOLDED);
}

/** Whether one of the nodes that are chosen covers an offset. */
function coverage(
  documents: readonly Document.Parsed[],
  isChosen: (node: unknown) => boolean,
): (offset: number) => boolean {
  const ranges: (readonly [number, number])[] = [];
  for (const document of documents) {
    visit(document, {
      Node(_, node) {
        if (!isChosen(node) || !node.range) return undefined;
        ranges.push([node.range[0], node.range[1]]);
        return visit.SKIP;
      },
    });
  }
  // In the order of the text, and none in another.
  return (offset) => {
    const at = ranges.findLastIndex(([from]) => from <= offset);
    return offset < (ranges[at]?.[1] ?? 0);
  };
}
