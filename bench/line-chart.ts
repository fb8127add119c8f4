/** Lines over a shared x axis, one panel below the other, as SVG. */

export interface Chart {
  readonly xLabel: string;
  readonly panels: readonly Panel[];
}

export interface Panel {
  readonly label: string;
  readonly lines: readonly Line[];
}

export interface Line {
  /** '' where the panel has one line. */
  readonly label: string;
  readonly color: string;
  readonly points: readonly (readonly [x: number, y: number])[];
}

const WIDTH = 720;
const PANEL_HEIGHT = 140;
const GAP = 40;
const LEFT = 60;
const RIGHT = 20;
const TOP = 24;
const TICKS = 4;

export function lineChart({ xLabel, panels }: Chart): string {
  const height = TOP + panels.length * (PANEL_HEIGHT + GAP);
  const xMax = Math.max(
    ...panels.flatMap(({ lines }) => lines.flatMap(({ points }) => points.map(([x]) => x))),
  );
  const body = panels.map((panel, at) => panelOf(panel, TOP + at * (PANEL_HEIGHT + GAP), xMax));
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" font-family="sans-serif" font-size="11">`,
    `<rect width="${WIDTH}" height="${height}" fill="white"/>`,
    ...body,
    text({ x: WIDTH - RIGHT, y: height - 6, anchor: 'end' }, xLabel),
    '</svg>\n',
  ].join('\n');
}

function panelOf({ label, lines }: Panel, top: number, xMax: number): string {
  const yMax = niceMax(Math.max(...lines.flatMap(({ points }) => points.map(([, y]) => y))));
  const xOf = (x: number): number => LEFT + (x / xMax) * (WIDTH - LEFT - RIGHT);
  const yOf = (y: number): number => top + PANEL_HEIGHT * (1 - y / yMax);
  const grid = Array.from({ length: TICKS + 1 }, (_, tick) => {
    const [x, y] = [(xMax * tick) / TICKS, (yMax * tick) / TICKS];
    return [
      `<path d="M${LEFT} ${yOf(y)}H${WIDTH - RIGHT}" stroke="#ddd"/>`,
      text({ x: LEFT - 6, y: yOf(y) + 4, anchor: 'end' }, short(y)),
      text({ x: xOf(x), y: top + PANEL_HEIGHT + 14, anchor: 'middle' }, short(x)),
    ].join('\n');
  });
  const drawn = lines.map(({ color, points }) => {
    const path = points
      .map(([x, y], at) => `${at === 0 ? 'M' : 'L'}${fixed(xOf(x))} ${fixed(yOf(y))}`)
      .join('');
    return `<path d="${path}" fill="none" stroke="${color}" stroke-width="1.5"/>`;
  });
  const legend = lines.flatMap(({ label: name, color }, at) =>
    name === ''
      ? []
      : [`<g fill="${color}">${text({ x: LEFT + 120 + at * 50, y: top - 8, anchor: 'start' }, name)}</g>`],
  );
  return [text({ x: LEFT, y: top - 8, anchor: 'start' }, label), ...grid, ...drawn, ...legend].join('\n');
}

function text(place: { x: number; y: number; anchor: 'start' | 'middle' | 'end' }, content: string): string {
  return `<text x="${fixed(place.x)}" y="${fixed(place.y)}" text-anchor="${place.anchor}">${content}</text>`;
}

/** 1, 2 or 5 times a power of ten. */
function niceMax(value: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(value, 1)));
  return power * ([1, 2, 5, 10].find((step) => step * power >= value) ?? 10);
}

function short(value: number): string {
  return String(Math.round(value * 10) / 10);
}

function fixed(value: number): string {
  return value.toFixed(1);
}
