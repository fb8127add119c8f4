/** The trace of a run: each patch, each concrete path with its value before and after, or what went wrong. */

/** Others are named by the member of the entry. */
const ACTIONS = {
  evaluate: 'expression',
  keep: 'not synced in this direction',
};

const NOTHING_FLOWS_BACK =
  'No patch ran: the host object has no change that flows back. Change a label, an annotation, or a value with a reverseExpression in the host object.';

export function showTrace(list, traces, isReverse) {
  list.replaceChildren(
    ...traces.flatMap(({ object, patches }) =>
      patches.map((patch) => patchItem(patch, traces.length > 1 ? object : '')),
    ),
  );
  const nothing = isReverse ? NOTHING_FLOWS_BACK : 'No patch ran.';
  if (list.children.length === 0) list.append(element('li', {}, nothing));
}

/** `object` is '' where the run has only one. */
function patchItem(patch, object) {
  const item = element('li', { className: patch.error === undefined ? '' : 'failed' });
  const heading = element('p');
  heading.append(
    element('strong', {}, `patches[${patch.index}] `),
    element('code', {}, patch.path === '' ? '(whole object)' : patch.path),
    ` ${ACTIONS[patch.action] ?? patch.action} ${object === '' ? '' : `of ${object} `}`,
    element('span', { className: 'time' }, `${patch.durationMs.toFixed(1)} ms`),
  );
  item.append(heading);
  if (patch.matches.length === 0) {
    const nearest = patch.nearest ? `; the nearest path that exists is ${patch.nearest}` : '';
    item.append(element('p', { className: 'reason' }, `This path matches nothing${nearest}.`));
  }
  if (patch.error === undefined) item.append(matchTable(patch.matches));
  else item.append(...errorParts(patch.error));
  return item;
}

function matchTable(matches) {
  const table = element('table');
  for (const { path, before, after } of matches) {
    const row = table.insertRow();
    row.insertCell().append(element('code', {}, path));
    row.insertCell().append(element('code', {}, show(before)), ' → ', element('code', {}, show(after)));
  }
  return table;
}

/** The message, and below it the expression with a caret under the place. */
export function errorParts({ path, message, excerpt, kind }) {
  const text = `${path === '' ? '' : `${path}: `}${message} (${kind})`;
  const place = excerpt === '' ? [] : [element('pre', {}, excerpt)];
  return [element('pre', { className: 'message' }, text), ...place];
}

function show(value) {
  return value === undefined || value === null ? '(none)' : JSON.stringify(value);
}

/** An HTML element; text is never read as markup. */
export function element(name, properties = {}, text) {
  const node = Object.assign(document.createElement(name), properties);
  if (text !== undefined) node.textContent = text;
  return node;
}
