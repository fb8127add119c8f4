/** The page of the demo: both clusters live, and the sync of edits. */

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser, Locator, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { launchChromium } from './chromium.ts';
import { startCommand, type RunningCommand } from './command.ts';
import {
  chooseExample,
  createEndpoints,
  createManyEndpoints,
  focusedLabel,
  overflowPx,
  seriousViolations,
  typeInto,
} from './page-driver.ts';

const LIVE = { timeout: 60_000, interval: 100 };
const MAINFRAME = 'Endpoints shop/legacy-mainframe';
const COPY = 'Endpoints team-demo/legacy-mainframe-x-shop-x-demo';

let folder: string;
let browser: Browser;
let demo: RunningCommand;
let page: Page;
/** From the start of the command to the address of the page. */
let startMs: number;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'endpoint-syncer-page-'));
  browser = await launchChromium();
  const startedMs = performance.now();
  demo = await startCommand('demo', '--dir', folder);
  startMs = performance.now() - startedMs;
  page = await browser.newPage();
  await page.goto(demo.url);
});
afterAll(async () => {
  await browser.close();
  await demo[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

/** The row of a virtual object. */
function rowOf(id: string): Locator {
  return page.locator('#rows tr').filter({ has: page.getByRole('button', { name: id, exact: true }) });
}

async function editedText(): Promise<string> {
  return (await page.locator('#edit .cm-line').allInnerTexts()).join('\n');
}

/** Opens an object and waits until the editor has it. */
async function open(name: string): Promise<string> {
  await page.getByRole('button', { name, exact: true }).click();
  const [kind = '', key = ''] = name.split(' ');
  await expect.poll(editedText, LIVE).toMatch(new RegExp(`name: ${key.split('/')[1] ?? ''}$`, 'mu'));
  await expect.poll(editedText, LIVE).toContain(`kind: ${kind}`);
  return editedText();
}

describe('pairs', () => {
  test('an original and its copy share a row, and the state is a word', async () => {
    const row = rowOf(MAINFRAME);
    await expect.poll(() => row.innerText(), LIVE).toContain(COPY.split(' ')[1]);
    expect(await row.getByRole('button', { name: COPY, exact: true }).count()).toBe(1);
    await expect.poll(() => row.locator('.state').innerText(), LIVE).toMatch(/^(synced|updated now)$/u);
    // Of every kind that is synced, Services included.
    for (const id of ['Service shop/db', 'Endpoints shop/db', 'ConfigMap shop/db-settings'])
      await expect.poll(() => rowOf(id).innerText(), LIVE).toContain('team-demo/');
  });

  test('an object that is not synced says why', async () => {
    await expect
      .poll(() => rowOf('Endpoints shop/web').locator('.state').innerText(), LIVE)
      .toBe('skipped: service has a selector');
    await expect
      .poll(() => rowOf('Service shop/web').locator('.state').innerText(), LIVE)
      .toBe('skipped: selects Pods');
  });

  test('a row says what a sync changed and how long it took, and is updated now', async () => {
    const row = rowOf('Endpoints shop/db');
    await expect.poll(() => row.locator('.state').innerText(), LIVE).toBe('updated now');
    await expect.poll(() => row.locator('.last').innerText(), LIVE).toMatch(/^owner \S+ → \S+, [\d.]+ ms$/u);
  });

  test('the log has headings, and says what changed', async () => {
    const headings = await page.locator('#log-part th').allInnerTexts();
    expect(headings).toEqual(['Time', 'Object', 'What', 'Change', 'Took']);
    await expect
      .poll(() => page.locator('#log').innerText(), LIVE)
      .toMatch(/Endpoints shop\/db\s+host created\s+owner payments → team-payments, .*\s+[\d.]+ ms/u);
  });

  test('counts are shown, and filter', async () => {
    const skipped = page.getByRole('button', { name: '2 skipped' });
    await skipped.click();
    await expect.poll(() => page.locator('#rows tr:visible').count(), LIVE).toBe(2);
    await page.getByRole('button', { name: '7 objects' }).click();
    await page.getByLabel('Filter', { exact: true }).fill('mainframe');
    await expect.poll(() => page.locator('#rows tr:visible').count(), LIVE).toBe(2);
    await page.getByLabel('Filter', { exact: true }).fill('no such object');
    await page.getByText('No object matches the filter.').waitFor();
    await page.getByLabel('Filter', { exact: true }).fill('');
    await expect.poll(() => page.locator('#rows tr:visible').count(), LIVE).toBe(7);
  });

  test('the first latencies are those of a sync, not of the start', async () => {
    const took = (await page.locator('#log td:last-child').allInnerTexts()).map(parseFloat);
    expect(took.length).toBeGreaterThan(4);
    expect(Math.max(...took)).toBeLessThan(startMs);
    expect(await page.locator('#log').innerText()).not.toContain('warm-up');
  });
});

describe('the editor', () => {
  test('an edit of the virtual object is synced to the host', async () => {
    const text = await open(MAINFRAME);
    expect(text).toContain('ip: 192.0.2.7');
    expect(text).not.toContain('managedFields');
    await typeInto(page, 'Object', text.replace('ip: 192.0.2.7', 'ip: 192.0.2.99'));
    await page.getByRole('button', { name: 'Save' }).click();
    await expect.poll(() => page.locator('#edit-status').innerText(), LIVE).toBe('Saved.');
    await expect
      .poll(() => rowOf(MAINFRAME).locator('.last').innerText(), LIVE)
      .toMatch(/^ip 192\.0\.2\.7 → 192\.0\.2\.99, [\d.]+ ms$/u);
    expect(await open(COPY)).toContain('ip: 192.0.2.99');
  });

  test('it stands beside the list', async () => {
    await open(MAINFRAME);
    const [list, editor] = await Promise.all(
      ['.list', '#edit-part'].map((part) => page.locator(part).boundingBox()),
    );
    expect(await page.locator('[aria-current=true]').innerText()).toBe(MAINFRAME);
    expect(editor?.x).toBeGreaterThanOrEqual((list?.x ?? 0) + (list?.width ?? 0));
    expect(editor?.y).toBeLessThanOrEqual((list?.y ?? 0) + 1);
  });

  test('the error of a rejected edit is shown below Save', async () => {
    const text = await open(MAINFRAME);
    await typeInto(page, 'Object', text.replace(/ip: \S+/u, 'ip: not-an-address'));
    await page.getByRole('button', { name: 'Save' }).click();
    await expect.poll(() => page.locator('#edit-status').innerText(), LIVE).toContain('not-an-address');
    const [save, status] = await Promise.all(
      ['#save', '#edit-status'].map((part) => page.locator(part).boundingBox()),
    );
    const gapPx = (status?.y ?? 0) - (save?.y ?? 0) - (save?.height ?? 0);
    expect(gapPx).toBeGreaterThanOrEqual(0);
    expect(gapPx).toBeLessThan(40);
  });

  test('by keyboard: arrows go through the rows, Enter opens the editor, Escape goes back', async () => {
    await page.getByRole('button', { name: 'Endpoints shop/db', exact: true }).focus();
    await page.keyboard.press('ArrowDown');
    const focused = (): Promise<string> => page.evaluate<string>('document.activeElement.textContent');
    expect(await focused()).toBe(MAINFRAME);
    await page.keyboard.press('Enter');
    await expect.poll(() => focusedLabel(page), LIVE).toBe('Object');
    await page.keyboard.press('Escape');
    expect(await focused()).toBe(MAINFRAME);
    expect(await page.locator('#edit-part').isVisible()).toBe(false);
  });

  test('an update keeps the focus', async () => {
    const button = page.getByRole('button', { name: 'Endpoints shop/db', exact: true });
    await button.focus();
    await page.evaluate('globalThis.focused = document.activeElement');
    const last = rowOf('Endpoints shop/db').locator('.last');
    const before = await last.innerText();
    await expect.poll(() => last.innerText(), LIVE).not.toBe(before);
    expect(await page.evaluate('document.activeElement === globalThis.focused')).toBe(true);
  });
});

describe('200 objects', () => {
  beforeAll(async () => {
    await createManyEndpoints(folder, 200);
    await page.getByRole('button', { name: '207 objects' }).waitFor();
  });

  test('are listed in a part that scrolls, are found, and open beside the list', async () => {
    const list = await page.locator('.list').boundingBox();
    expect(list?.height).toBeLessThan(700);
    await page.getByLabel('Filter', { exact: true }).fill('many-17');
    await expect.poll(() => page.locator('#rows tr:visible').count(), LIVE).toBe(11);
    expect(await open('Endpoints shop/many-170')).toContain('name: many-170');
    await page.keyboard.press('Escape');
    await page.getByLabel('Filter', { exact: true }).fill('');
  });

  test.each([
    [360, 'light'],
    [390, 'dark'],
    [1600, 'light'],
    [1600, 'dark'],
  ] as const)('at %i px in %s the page is accessible', async (width, colorScheme) => {
    await page.setViewportSize({ width, height: 900 });
    await page.emulateMedia({ colorScheme });
    expect(await overflowPx(page)).toBeLessThanOrEqual(0);
    await open(MAINFRAME);
    expect(await overflowPx(page)).toBeLessThanOrEqual(0);
    expect(await seriousViolations(page)).toEqual([]);
    await page.keyboard.press('Escape');
    expect(await seriousViolations(page)).toEqual([]);
  });
});

test('"Your configuration" follows the file, but for patches that are being edited', async () => {
  const file = join(folder, 'config.yaml');
  const shipped = readFileSync(file, 'utf8');
  const patches = async (): Promise<string> =>
    (await page.locator('#patches .cm-line').allInnerTexts()).join('\n');
  await chooseExample(page, 'Your configuration');
  await expect.poll(patches, LIVE).toContain('"team-" + value');
  writeFileSync(file, shipped.replaceAll('team-"', 'squad-"').replace('slice(5)', 'slice(6)'));
  await expect.poll(patches, LIVE).toContain('"squad-" + value');
  // The demo changes the sample with the edited patches in force.
  await expect
    .poll(() => rowOf('Endpoints shop/db').locator('.last').innerText(), LIVE)
    .toMatch(/^owner \S+ → \S+, [\d.]+ ms$/u);
  const states = await page.locator('#rows .state').allInnerTexts();
  expect(states.filter((state) => /^(?:failed|contested|refused)/u.test(state))).toEqual([]);
  const edited = `- path: metadata.labels.a\n  expression: '"mine"'\n`;
  await typeInto(page, 'Patches', edited);
  writeFileSync(file, shipped);
  const served = async (): Promise<string> => {
    const { origin } = new URL(demo.url);
    const response = await page.request.post(`${origin}/api/start`, { data: {}, headers: { origin } });
    const { examples } = (await response.json()) as { examples: { patches: string }[] };
    return examples[0]?.patches ?? '';
  };
  await expect.poll(served, LIVE).toContain('team-');
  expect((await patches()).trim()).toBe(edited.trim());
});

test('a patch that fails: the state says why, and the log stays readable', async () => {
  const file = join(folder, 'config.yaml');
  const shipped = readFileSync(file, 'utf8');
  writeFileSync(file, shipped.replace('value + "-" + context.vcluster.name', 'value.nope.x'));
  await expect
    .poll(() => rowOf('Endpoints shop/db').locator('.state').innerText(), LIVE)
    .toMatch(/^failed: patches\[1\], path /u);
  for (const width of [390, 1600]) {
    await page.setViewportSize({ width, height: 900 });
    // Nothing is cut, and no word is broken into letters.
    const cells = await page.evaluate<number[][]>(
      `[...document.querySelectorAll('#log .problem td:not(:empty)')].map((cell) => [cell.scrollWidth - cell.clientWidth, cell.clientWidth])`,
    );
    expect(cells.length).toBeGreaterThan(0);
    expect(cells.filter(([cutPx = 0, widthPx = 0]) => cutPx > 1 || widthPx < 40)).toEqual([]);
  }
  writeFileSync(file, shipped);
  await expect
    .poll(() => rowOf('Endpoints shop/db').locator('.state').innerText(), LIVE)
    .toMatch(/^(?:synced|updated now)/u);
});

test('an object that is refused says why, and the object in its way is listed', async () => {
  await createEndpoints(folder, 'host', {
    namespace: 'team-demo',
    name: 'taken-x-shop-x-demo',
    ip: '10.9.0.1',
  });
  await createEndpoints(folder, 'virtual', { namespace: 'shop', name: 'taken', ip: '10.9.0.2' });
  await expect
    .poll(() => rowOf('Endpoints shop/taken').locator('.state').innerText(), LIVE)
    .toBe('refused: the host has an object of that name that is not its copy');
  const taken = rowOf('Endpoints team-demo/taken-x-shop-x-demo').locator('.state');
  await expect.poll(() => taken.innerText(), LIVE).toContain('host only');
  await page.getByRole('button', { name: '1 refused' }).click();
  await expect.poll(() => page.locator('#rows tr:visible').count(), LIVE).toBe(1);
});
