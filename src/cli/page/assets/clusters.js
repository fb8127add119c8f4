/** Both clusters of the demo side by side: copies are linked to their originals, changes are coloured, and objects can be edited. */

import { createEditor } from './editors.js';
import { element } from './trace.js';

const SVG = 'http://www.w3.org/2000/svg';
const byId = (id) => document.getElementById(id);

let latest = { virtual: [], host: [], log: [] };
let editor;
let edited;

/** Shows the feed of the demo; `call` posts JSON to the page's server. */
export function showClusters(call) {
  byId('clusters').hidden = false;
  editor = createEditor(byId('edit'), { label: 'Object', onChange: () => undefined });
  new EventSource('/api/demo/feed').addEventListener('message', ({ data }) => show(JSON.parse(data)));
  addEventListener('resize', drawLinks);
  byId('cancel').addEventListener('click', closeEditor);
  byId('save').addEventListener('click', () => void save(call));
}

async function save(call) {
  try {
    await call('/api/demo/save', { cluster: edited.cluster, object: editor.text });
    closeEditor();
    byId('edit-status').textContent = 'Saved.';
  } catch (error) {
    byId('edit-status').textContent = error.message;
  }
}

function show(state) {
  latest = state;
  for (const cluster of ['virtual', 'host'])
    byId(`${cluster}-objects`).replaceChildren(
      ...state[cluster].map((object) => objectItem(cluster, object)),
    );
  byId('log').replaceChildren(...state.log.map(logRow));
  drawLinks();
}

function objectItem(cluster, object) {
  const { id, kind, key, outcome } = object;
  const item = element('li', { className: classOf(outcome) });
  item.dataset.id = id;
  const button = element('button', { type: 'button' });
  button.append(element('strong', {}, kind), ` ${key}`);
  if (outcome?.problem) button.append(element('span', { className: 'reason' }, outcome.what));
  button.addEventListener('click', () => edit(cluster, object));
  item.append(button);
  return item;
}

function classOf(outcome) {
  if (outcome === null) return '';
  if (outcome.problem) return 'refused';
  return outcome.what.includes('created') ? 'created' : 'updated';
}

function logRow({ time, key, what, latencyMs, problem }) {
  const row = element('tr', { className: problem ? 'refused' : '' });
  const cells = [time, key, what, latencyMs === null ? '' : `${latencyMs.toFixed(1)} ms`];
  row.append(...cells.map((text) => element('td', {}, text)));
  return row;
}

function edit(cluster, object) {
  edited = { cluster };
  byId('edit-part').hidden = false;
  byId('edit-title').textContent = `${object.kind} ${object.key} in the ${cluster} cluster`;
  byId('edit-status').textContent = '';
  editor.text = object.text;
  byId('edit').scrollIntoView({ block: 'nearest' });
}

function closeEditor() {
  byId('edit-part').hidden = true;
}

function drawLinks() {
  const links = byId('links');
  const frame = links.getBoundingClientRect();
  const middle = (cluster, id) => {
    const item = [...byId(`${cluster}-objects`).children].find(({ dataset }) => dataset.id === id);
    if (item === undefined) return undefined;
    const { top, height } = item.firstChild.getBoundingClientRect();
    return top + height / 2 - frame.top;
  };
  const lines = latest.host.flatMap(({ id, counterpart }) => {
    const [from, to] = [middle('virtual', counterpart), middle('host', id)];
    if (from === undefined || to === undefined) return [];
    const line = document.createElementNS(SVG, 'line');
    const ends = { x1: 0, y1: from, x2: frame.width, y2: to };
    for (const [name, value] of Object.entries(ends)) line.setAttribute(name, String(value));
    return [line];
  });
  links.replaceChildren(...lines);
}
