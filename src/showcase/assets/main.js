/** The playground: runs the patches as the user types, and shows the result, the trace and every problem at its place. */

import { createEditor, patchCompletion, showText } from './editors.js';
import { asConfiguration, asTestCase, decodeState, encodeState } from './share.js';
import { element, errorParts, showTrace } from './trace.js';

const TYPING_PAUSE_MS = 150;
/** Faster runs say nothing: the words would only flicker. */
const SLOW_MS = 250;
const byId = (id) => document.getElementById(id);

let start = await call('/api/start', {}).catch((error) => {
  byId('loading').textContent = `The page cannot load: ${error.message}`;
  throw error;
});
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
editors.host = createEditor(byId('host'), { label: 'Existing host object', onChange: runSoon });

export async function call(path, body) {
  const response = await fetch(path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  if (!response.ok) throw new Error(await response.text());
  return response.json();
}

/** The demo's configuration has changed. The patches in the editor follow it, unless they have been edited. */
async function followConfiguration() {
  const [before] = start.examples;
  start = await call('/api/start', {});
  showExamples();
  const { title, patches } = start.examples[0];
  if (title !== before.title || editors.patches.text !== before.patches) return;
  editors.patches.text = patches;
  runSoon();
}

function showExamples() {
  const chosen = byId('example').value;
  const options = start.examples.map(({ title }, index) =>
    element('option', { value: String(index) }, title),
  );
  byId('example').replaceChildren(...options);
  byId('example').value = chosen || '0';
}

function state() {
  return {
    patches: editors.patches.text,
    virtual: editors.virtual.text,
    host: editors.host.text,
    isReverse: document.querySelector('input[name=direction]:checked').value === 'toVirtual',
  };
}

async function load({ patches, virtual, host, isReverse }) {
  editors.patches.text = patches ?? '';
  editors.virtual.text = virtual ?? '';
  editors.host.text = host ?? '';
  document.querySelector(`input[value=${isReverse ? 'toVirtual' : 'toHost'}]`).checked = true;
  await startReverse();
}

/** A reverse run needs a host object to edit: without one, it starts from what the patches make of the virtual object. */
async function startReverse() {
  const { isReverse, host, ...input } = state();
  showInput(isReverse);
  if (isReverse && host.trim() === '') {
    const { result = '' } = await call('/api/run', { ...input, host, isReverse: false }).catch(() => ({}));
    if (editors.host.text.trim() === '') editors.host.text = result;
  }
  runSoon();
}

/** What is edited in this direction comes first. */
function showInput(isReverse) {
  const part = byId('host-part');
  if (isReverse) byId('input').prepend(part);
  else byId('input').append(part);
  byId('host-hint').textContent = isReverse
    ? 'edit it: what flows back is the result'
    : 'if there is one already';
}

function runSoon() {
  clearTimeout(timer);
  timer = setTimeout(() => void run(), TYPING_PAUSE_MS);
}

async function run() {
  const id = ++latestRun;
  document.body.setAttribute('aria-busy', 'true');
  const slow = setTimeout(() => (byId('run-status').textContent = 'running…'), SLOW_MS);
  try {
    const result = await call('/api/run', state());
    if (id === latestRun) show(result);
  } catch (error) {
    if (id === latestRun) showStale([{ level: 'error', text: `cannot run: ${error.message}` }]);
  } finally {
    clearTimeout(slow);
    if (id === latestRun) document.body.removeAttribute('aria-busy');
  }
}

function show(result) {
  const problems = result.problems ?? [];
  patchList = result.patchList;
  for (const [name, editor] of Object.entries(editors)) {
    const own = problems.filter((problem) => problem.editor === name);
    editor.showProblems(own);
    showProblems(byId(`${name}-problems`), own, editor);
  }
  showFailures(result.traces ?? []);
  if (result.traces === undefined) return showStale(result.notes ?? []);
  last = { ...result, isReverse: state().isReverse };
  byId('output').classList.remove('stale');
  byId('run-status').textContent = '';
  showNotes(result.notes ?? []);
  showTrace(byId('trace'), result.traces, last.isReverse);
  showResult();
}

/** Problems stand under their editor; each leads to its line. */
function showProblems(part, problems, editor) {
  const list = element('ul');
  for (const { line, column, message, severity } of problems) {
    const item = element('li', { className: severity });
    const place = element('button', { type: 'button' }, `line ${Math.max(line, 1)}: ${message}`);
    place.addEventListener('click', () => editor.focusAt(line, column));
    item.append(place);
    list.append(item);
  }
  const count = problems.length > 3 ? [element('p', {}, `${problems.length} problems`)] : [];
  part.replaceChildren(...(problems.length === 0 ? [] : [...count, list]));
}

/** Patches that fail stand below the patches too; the same patch may fail on several objects. */
function showFailures(traces) {
  const failed = traces.flatMap(({ patches }) => patches.filter(({ error }) => error !== undefined));
  for (const { index, error } of new Map(failed.map((patch) => [patch.index, patch])).values()) {
    const failure = element('div', { className: 'failure' });
    failure.append(element('strong', {}, `patches[${index}]`), ...errorParts(error));
    byId('patches-problems').append(failure);
  }
}

/** The result of an earlier input stays, and says so. */
function showStale(notes) {
  const hasResult = last.traces !== undefined;
  byId('output').classList.toggle('stale', hasResult);
  byId('run-status').textContent = hasResult ? 'result of the last valid input' : 'no result yet';
  showNotes(notes);
}

function showNotes(notes) {
  byId('notes').replaceChildren(...notes.map(({ level, text }) => element('li', { className: level }, text)));
}

function showResult() {
  const text = (byId('bookkeeping').checked ? last.result : last.plainResult) ?? '';
  byId('result-title').textContent = last.isReverse ? 'Result in the virtual cluster' : 'Result on the host';
  if (text === '')
    byId('result').replaceChildren(element('p', { className: 'empty' }, 'Nothing is written.'));
  else showText(byId('result'), 'Result', text, last.original || undefined);
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
  const linked = await decodeState(location.hash);
  if (linked !== undefined) await load(linked);
  return linked !== undefined;
}

showExamples();
byId('example').addEventListener('change', ({ target }) => void load(start.examples[Number(target.value)]));
for (const radio of document.querySelectorAll('input[name=direction]'))
  radio.addEventListener('change', () => void startReverse());
byId('bookkeeping').addEventListener('change', showResult);
byId('copy-config').addEventListener('click', () => void copy(asConfiguration(state(), patchList, start)));
byId('copy-test').addEventListener('click', () => void copy(asTestCase(state(), last.plainResult ?? '')));
byId('copy-link').addEventListener('click', () => void copyLink());
addEventListener('hashchange', () => void loadFragment());

byId('loading').remove();
if (start.isDemo) {
  byId('home').textContent = 'demo';
  document.title = 'endpoint-syncer demo';
  const { showClusters } = await import('./clusters.js');
  showClusters(call, followConfiguration);
}
if (!(await loadFragment())) await load(start.examples[0]);
