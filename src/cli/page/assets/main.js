/** The page: runs the patches as the user types, and shows the result, the trace and every problem at its place. */

import { createEditor, patchCompletion, showText } from './editors.js';
import { asConfiguration, asTestCase, decodeState, encodeState } from './share.js';
import { element, showTrace } from './trace.js';

const TYPING_PAUSE_MS = 150;
const byId = (id) => document.getElementById(id);

const start = await call('/api/start', {});
const editors = {};
let last = {};
let patchList = 'endpoints';
let timer;
let latestRun = 0;

editors.patches = createEditor(byId('patches'), {
  label: 'Patches',
  onChange: runSoon,
  complete: patchCompletion(start.definitions, () => last.paths ?? []),
});
editors.virtual = createEditor(byId('virtual'), { label: 'Virtual object', onChange: runSoon });
editors.host = createEditor(byId('host'), { label: 'Host object', onChange: runSoon });

export async function call(path, body) {
  const response = await fetch(path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  if (!response.ok) throw new Error(await response.text());
  return response.json();
}

function state() {
  return {
    patches: editors.patches.text,
    virtual: editors.virtual.text,
    host: editors.host.text,
    isReverse: document.querySelector('input[name=direction]:checked').value === 'toVirtual',
  };
}

function load({ patches, virtual, host, isReverse }) {
  editors.patches.text = patches ?? '';
  editors.virtual.text = virtual ?? '';
  editors.host.text = host ?? '';
  document.querySelector(`input[value=${isReverse ? 'toVirtual' : 'toHost'}]`).checked = true;
  runSoon();
}

function runSoon() {
  clearTimeout(timer);
  timer = setTimeout(() => void run(), TYPING_PAUSE_MS);
}

async function run() {
  const id = ++latestRun;
  document.body.setAttribute('aria-busy', 'true');
  try {
    const result = await call('/api/run', state());
    if (id === latestRun) show(result);
  } catch (error) {
    if (id === latestRun) showNotes([{ level: 'error', text: `cannot run: ${error.message}` }]);
  } finally {
    if (id === latestRun) document.body.removeAttribute('aria-busy');
  }
}

function show(result) {
  const problems = result.problems ?? [];
  patchList = result.patchList;
  for (const [name, editor] of Object.entries(editors))
    editor.showProblems(problems.filter((problem) => problem.editor === name));
  const places = problems.map(({ editor, line, message, severity }) => ({
    level: severity,
    text: `${editor}${line > 0 ? ` line ${line}` : ''}: ${message}`,
  }));
  showNotes([...places, ...(result.notes ?? [])]);
  if (result.traces === undefined) return;
  last = result;
  showTrace(byId('trace'), result.traces);
  showResult();
}

function showNotes(notes) {
  byId('notes').replaceChildren(...notes.map(({ level, text }) => element('li', { className: level }, text)));
}

function showResult() {
  const { isReverse } = state();
  const text = (byId('bookkeeping').checked ? last.result : last.plainResult) ?? '';
  byId('result-title').textContent = isReverse ? 'Virtual object' : 'Host object';
  showText(byId('result'), 'Result', text, last.original);
  byId('imports-part').hidden = (last.imports ?? '') === '';
  if (last.imports) showText(byId('imports'), 'Imported objects', last.imports);
}

async function copy(text) {
  await navigator.clipboard.writeText(text);
  byId('copied').textContent = 'Copied.';
  setTimeout(() => (byId('copied').textContent = ''), 2000);
}

async function copyLink() {
  const url = new URL(location.href);
  url.hash = await encodeState(state());
  history.replaceState(undefined, '', url);
  await copy(url.href);
}

async function loadFragment() {
  load((await decodeState(location.hash)) ?? start.examples[0]);
}

for (const [index, { title }] of start.examples.entries())
  byId('example').append(element('option', { value: String(index) }, title));
byId('example').addEventListener('change', ({ target }) => load(start.examples[Number(target.value)]));
for (const radio of document.querySelectorAll('input[name=direction]'))
  radio.addEventListener('change', runSoon);
byId('bookkeeping').addEventListener('change', showResult);
byId('copy-config').addEventListener('click', () => void copy(asConfiguration(state(), patchList, start)));
byId('copy-test').addEventListener('click', () => void copy(asTestCase(state(), last.plainResult ?? '')));
byId('copy-link').addEventListener('click', () => void copyLink());
addEventListener('hashchange', () => void loadFragment());
await loadFragment();

if (start.isDemo) {
  byId('home').textContent = 'demo';
  const { showClusters } = await import('./clusters.js');
  showClusters(call);
}
