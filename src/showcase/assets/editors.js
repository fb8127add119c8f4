/** The editors of the page: YAML with completion and problems at their places, and read-only views of results. */

import { acceptCompletion, autocompletion, completionKeymap } from '@codemirror/autocomplete';
import { defaultKeymap, history, historyKeymap } from '@codemirror/commands';
import { yaml } from '@codemirror/lang-yaml';
import { syntaxHighlighting } from '@codemirror/language';
import { lintGutter, lintKeymap, setDiagnostics } from '@codemirror/lint';
import { unifiedMergeView } from '@codemirror/merge';
import { EditorState } from '@codemirror/state';
import { EditorView, highlightActiveLine, keymap, lineNumbers } from '@codemirror/view';
import { classHighlighter } from '@lezer/highlight';

const nonce = document.querySelector('meta[name=style-nonce]').content;

const appearance = [
  lineNumbers(),
  yaml(),
  syntaxHighlighting(classHighlighter),
  EditorView.lineWrapping,
  EditorView.cspNonce.of(nonce),
];

function labelled(label) {
  return EditorView.contentAttributes.of({ 'aria-label': label });
}

/** An editor below `parent`. `complete` is a completion source; the Tab key leaves the editor, as everywhere on the page. */
export function createEditor(parent, { label, onChange, complete }) {
  const view = new EditorView({
    parent,
    extensions: [
      ...appearance,
      labelled(label),
      history(),
      highlightActiveLine(),
      lintGutter(),
      autocompletion({ override: complete === undefined ? [] : [complete] }),
      keymap.of([
        ...completionKeymap,
        { key: 'Ctrl-Enter', run: acceptCompletion },
        ...lintKeymap,
        ...historyKeymap,
        ...defaultKeymap,
      ]),
      EditorView.updateListener.of((update) => {
        if (update.docChanged) onChange();
      }),
    ],
  });
  return {
    get text() {
      return view.state.doc.toString();
    },
    set text(value) {
      if (value !== this.text)
        view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: value } });
    },
    focusAt(line, column) {
      const { from } = diagnosticOf(view.state, { line, column });
      view.dispatch({ selection: { anchor: from }, scrollIntoView: true });
      view.focus();
    },
    /** `line` and `column` of a problem are 1-based; 0 has no place and is shown at the start. */
    showProblems(problems) {
      view.dispatch(
        setDiagnostics(
          view.state,
          problems.map((problem) => diagnosticOf(view.state, problem)),
        ),
      );
    },
  };
}

function diagnosticOf({ doc }, { line, column, message, severity }) {
  const at = doc.line(Math.min(Math.max(line, 1), doc.lines));
  const from = Math.min(at.from + Math.max(column - 1, 0), at.to);
  return { from, to: at.to, message, severity };
}

/** Shows `text` as a difference from `original`; without an original as it is. */
export function showText(parent, label, text, original) {
  const extensions = [...appearance, labelled(label), EditorState.readOnly.of(true)];
  if (original !== undefined) {
    extensions.push(unifiedMergeView({ original, mergeControls: false, gutter: true }));
  }
  parent.replaceChildren();
  // The old view is removed with its element.
  return new EditorView({ parent, doc: text, extensions });
}

/** Completes the keys of a patch from its JSON Schema, and paths from the object that is shown. */
export function patchCompletion(definitions, pathsOf) {
  const keysOf = (name) =>
    Object.entries(definitions[name]?.properties ?? {}).map(([label, { description }]) => ({
      label,
      apply: `${label}: `,
      info: description,
      type: 'property',
    }));
  const keys = Object.keys(definitions)
    .filter((name) => /patch|reference/i.test(name))
    .flatMap(keysOf);
  return (context) => {
    const path = context.matchBefore(/path:\s*\S*/);
    if (path !== null) {
      const typed = path.text.replace(/^path:\s*/, '');
      return {
        from: path.to - typed.length,
        options: pathsOf().map((label) => ({ label })),
        validFor: /^\S*$/,
      };
    }
    const word = context.matchBefore(/[A-Za-z]+/);
    const before = context.state.doc
      .lineAt(context.pos)
      .text.slice(0, (word?.from ?? context.pos) - context.state.doc.lineAt(context.pos).from);
    if (!/^[\s{,-]*$/.test(before) || (word === null && !context.explicit)) return null;
    return { from: word?.from ?? context.pos, options: keys, validFor: /^[A-Za-z]*$/ };
  };
}
