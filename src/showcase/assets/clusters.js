/** Both clusters of the demo: a row for each original with its copy, what changed last and how fast, and an editor beside them. */

import { createEditor } from './editors.js';
import { element } from './trace.js';

const UPDATED_MS = 3000;
/** Of `status`, but for `updated now` and `host only`. Those in `RARE` have a counter only where there is such an object. */
const STATES = [
  'synced',
  'updated now',
  'skipped',
  'refused',
  'failed',
  'contested',
  'terminating',
  'pending',
  'host only',
];
const RARE = ['failed', 'contested', 'terminating', 'pending', 'host only'];
const byId = (id) => document.getElementById(id);

/** The rows on the page by the id of their pair: `{row, parts, pair}`. They are updated in place, so that the focus stays. */
const shown = new Map();
/** Counters of the state filter by state; '' counts all. */
const counters = new Map();
let post;
let editor;
/** What is edited: `{cluster, opener}`, with the button of its row. */
let edited;
let stateFilter = '';

/** Shows the feed of the demo; `call` posts JSON to the page's server, and `configured` is called when the demo uses another configuration. */
export function showClusters(call, configured) {
  post = call;
  byId('clusters').hidden = false;
  editor = createEditor(byId('edit'), { label: 'Object', onChange: () => undefined });
  for (const state of ['', ...STATES]) addCounter(state);
  const feed = new EventSource('/api/demo/feed');
  let known;
  feed.addEventListener('message', ({ data }) => {
    const { configurations, ...state } = JSON.parse(data);
    show(state);
    if (known !== undefined && known !== configurations) void configured();
    known = configurations;
  });
  feed.addEventListener('error', () => (byId('connection').textContent = 'disconnected; trying again…'));
  byId('filter').addEventListener('input', filterRows);
  byId('skip').addEventListener('click', () => byId('playground-title').focus());
  byId('rows').addEventListener('keydown', moveFocus);
  byId('close').addEventListener('click', closeEditor);
  byId('save').addEventListener('click', () => void save());
  byId('edit-part').addEventListener('keydown', (event) => {
    if (event.key === 'Escape' && !event.defaultPrevented) closeEditor();
  });
}

function show({ rows, log }) {
  byId('connection').textContent = '';
  const isFirst = shown.size === 0;
  const ids = new Set(rows.map(({ id }) => id));
  for (const [id, { row }] of shown) {
    if (ids.has(id)) continue;
    row.remove();
    shown.delete(id);
  }
  let next = byId('rows').firstElementChild;
  for (const pair of rows) {
    const item = shown.get(pair.id) ?? addRow(pair, next);
    updateRow(item, pair, isFirst);
    next = item.row.nextElementSibling;
  }
  filterRows();
  showLog(log);
}

function addRow(pair, before) {
  const row = element('tr');
  const parts = {
    virtual: element('td', { className: 'virtual' }),
    state: element('td', { className: 'state' }),
    host: element('td', { className: 'host' }),
    last: element('td', { className: 'last' }),
  };
  row.append(...Object.values(parts));
  byId('rows').insertBefore(row, before);
  const item = { row, parts, updatedUntilMs: 0 };
  shown.set(pair.id, item);
  return item;
}

function updateRow(item, pair, isFirst) {
  const seq = pair.last?.seq ?? 0;
  if (!isFirst && pair.state === 'synced' && seq !== (item.pair?.last?.seq ?? 0)) {
    item.updatedUntilMs = performance.now() + UPDATED_MS;
    setTimeout(() => {
      showState(item);
      filterRows();
    }, UPDATED_MS);
  }
  item.pair = pair;
  showName(item, 'virtual');
  showName(item, 'host');
  showState(item);
  setText(item.parts.last, lastChange(pair.last));
}

function showName(item, cluster) {
  const { pair } = item;
  const cell = item.parts[cluster];
  const key = pair[cluster];
  const button = cell.querySelector('button');
  if (key === null) return button === null ? setText(cell, '—') : cell.replaceChildren('—');
  if (button !== null) return setText(button.lastElementChild, key);
  const created = element('button', { type: 'button' });
  // The kind of a copy is that of its original.
  const isRepeated = cluster === 'host' && pair.virtual !== null;
  created.append(
    element('span', { className: isRepeated ? 'visually-hidden' : 'kind' }, `${pair.kind} `),
    element('span', {}, key),
  );
  created.addEventListener('click', () => {
    void edit(cluster, `${item.pair.kind} ${item.pair[cluster]}`, created);
  });
  cell.replaceChildren(created);
}

/** The state in words; the colour repeats it. */
function showState({ row, parts, pair, updatedUntilMs }) {
  const isUpdated = pair.state === 'synced' && performance.now() < updatedUntilMs - 1;
  row.dataset.state = isUpdated ? 'updated now' : pair.state;
  setText(parts.state, pair.why === '' ? row.dataset.state : `${row.dataset.state}: ${pair.why}`);
}

function lastChange(last) {
  if (last === null || last.isProblem) return '';
  return `${last.change || last.what}, ${last.latencyMs.toFixed(1)} ms`;
}

/** Text that stays the same is not announced again. */
function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

function addCounter(state) {
  const button = element('button', { type: 'button' });
  button.setAttribute('aria-pressed', String(state === ''));
  button.dataset.state = state;
  button.addEventListener('click', () => {
    stateFilter = state;
    for (const [other, node] of counters) node.setAttribute('aria-pressed', String(other === state));
    filterRows();
  });
  counters.set(state, button);
  byId('counts').append(button);
}

function filterRows() {
  const words = byId('filter').value.trim().toLowerCase();
  const counts = new Map();
  let visible = 0;
  for (const { row, pair } of shown.values()) {
    const { state } = row.dataset;
    counts.set(state, (counts.get(state) ?? 0) + 1);
    const isNamed = `${pair.id} ${pair.host ?? ''}`.toLowerCase().includes(words);
    row.hidden = !isNamed || (stateFilter !== '' && stateFilter !== state);
    if (!row.hidden) visible++;
  }
  for (const [state, button] of counters) {
    const count = state === '' ? shown.size : (counts.get(state) ?? 0);
    setText(button, `${count} ${state || 'objects'}`);
    button.hidden = count === 0 && RARE.includes(state) && stateFilter !== state;
  }
  setText(
    byId('no-rows'),
    shown.size === 0 ? 'No objects.' : visible === 0 ? 'No object matches the filter.' : '',
  );
}

/** Arrow keys go to the row above or below, on the same side where it has an object there. */
function moveFocus(event) {
  const step = { ArrowDown: 'nextElementSibling', ArrowUp: 'previousElementSibling' }[event.key];
  const cell = event.target.closest('td');
  if (step === undefined || cell === null) return;
  let row = cell.parentElement[step];
  while (row?.hidden) row = row[step];
  const target = row?.querySelector(`.${cell.className} button`) ?? row?.querySelector('button');
  if (target == null) return;
  event.preventDefault();
  target.focus();
}

const logLines = new Map();

/** New lines come on top; lines that are there keep their place. */
function showLog(log) {
  for (const line of log.toReversed()) {
    let row = logLines.get(line.seq);
    if (row === undefined) {
      row = element('tr', { className: line.isProblem ? 'problem' : '' });
      row.append(...Array.from({ length: 5 }, () => element('td')));
      logLines.set(line.seq, row);
      byId('log').prepend(row);
    }
    const took = line.latencyMs === null ? '' : `${line.latencyMs.toFixed(1)} ms`;
    const texts = [line.time, line.id, line.what, line.change ?? '', took];
    for (const [at, text] of texts.entries()) setText(row.cells[at], text);
  }
  const seqs = new Set(log.map(({ seq }) => seq));
  for (const [seq, row] of logLines) {
    if (seqs.has(seq)) continue;
    row.remove();
    logLines.delete(seq);
  }
}

async function edit(cluster, id, opener) {
  edited?.opener.removeAttribute('aria-current');
  opener.setAttribute('aria-current', 'true');
  edited = { cluster, opener };
  byId('edit-part').hidden = false;
  byId('clusters').classList.add('editing');
  byId('edit-title').textContent = `${id} in the ${cluster} cluster`;
  showEditStatus('loading…');
  try {
    const { text } = await post('/api/demo/object', { cluster, id });
    editor.text = text;
    showEditStatus('');
  } catch (error) {
    editor.text = '';
    showEditStatus(error.message, 'error');
  }
  editor.focusAt(1, 1);
}

async function save() {
  showEditStatus('saving…');
  try {
    const { text } = await post('/api/demo/save', { cluster: edited.cluster, object: editor.text });
    editor.text = text;
    showEditStatus('Saved.');
  } catch (error) {
    showEditStatus(error.message, 'error');
  }
}

function showEditStatus(text, className = '') {
  Object.assign(byId('edit-status'), { textContent: text, className });
}

function closeEditor() {
  byId('edit-part').hidden = true;
  byId('clusters').classList.remove('editing');
  edited.opener.removeAttribute('aria-current');
  edited.opener.focus();
}
