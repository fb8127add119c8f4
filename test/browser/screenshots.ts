/** Writes the screenshots of the documentation: `npm run screenshots`. */

import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { launchChromium } from './chromium.ts';
import { startCommand } from './command.ts';
import { createManyEndpoints, typeInto } from './page-driver.ts';

const IMAGES = join(import.meta.dirname, '../../docs/images');
const SIZE = { width: 1280, height: 800 };
/** Of one state of the page. */
const STATE_SIZE = { width: 1000, height: 560 };
const OWNER = 'metadata.annotations["example.com/owner"]';

/** `NAME.png` and `NAME-dark.png`. */
async function shoot(browser: Browser, url: string, ready: readonly string[], name: string): Promise<void> {
  for (const colorScheme of ['light', 'dark'] as const) {
    const page = await browser.newPage({ viewport: SIZE, colorScheme });
    await page.goto(url);
    for (const selector of ready) await page.locator(selector).first().waitFor();
    await save(page, `${name}${colorScheme === 'dark' ? '-dark' : ''}`);
  }
}

/** `state-NAME.png`: the page after `prepare`. */
async function shootState(
  browser: Browser,
  url: string,
  name: string,
  prepare: (page: Page) => Promise<void>,
  size = STATE_SIZE,
): Promise<void> {
  const page = await browser.newPage({ viewport: size, colorScheme: 'light' });
  await page.goto(url, { waitUntil: 'commit' });
  await prepare(page);
  await save(page, `state-${name}`);
}

async function save(page: Page, name: string): Promise<void> {
  // The editors measure their lines after they are shown.
  await page.waitForTimeout(1000);
  await page.screenshot({ path: join(IMAGES, `${name}.png`), fullPage: false });
  await page.close();
}

async function shootPlayground(browser: Browser, url: string): Promise<void> {
  const patches = (text: string, ready: string) => async (page: Page) => {
    await page.locator('#trace table').waitFor();
    await typeInto(page, 'Patches', text);
    await page.getByText(ready).first().waitFor();
  };
  await shootState(browser, url, 'empty', async (page) => {
    await page.locator('#trace table').waitFor();
    await typeInto(page, 'Virtual object', '');
    await page.getByText('Nothing is written.').waitFor();
  });
  await shootState(browser, url, 'loading', async (page) => {
    await page.route('**/api/run', () => undefined);
    await page.getByText('running…').waitFor();
  });
  const failing = `- path: ${OWNER}\n  expression: value.upperCase()\n`;
  await shootState(browser, url, 'error', patches(failing, 'the daemon leaves out its path'));
  const invalid = Array.from(
    { length: 10 },
    (_, at) => `- path: metadata.labels.l${at}\n  expression: value.(\n`,
  );
  await shootState(browser, url, 'ten-errors', patches(invalid.join(''), '10 problems'));
  const loop = `- path: ${OWNER}\n  expression: while (true) { value }\n`;
  await shootState(browser, url, 'loop', patches(loop, 'took longer than 100 ms'));
}

const folder = mkdtempSync(join(tmpdir(), 'endpoint-syncer-screenshots-'));
mkdirSync(IMAGES, { recursive: true });
{
  // First, because its samples are synced while the rest starts, and the pictures have their latencies.
  await using demo = await startCommand('demo', '--dir', folder);
  await using playground = await startCommand('playground');
  const browser = await launchChromium();
  await shoot(browser, playground.url, ['#trace table'], 'playground');
  await shoot(browser, demo.url, ['#log tr:nth-child(6)', '#trace table', 'text=updated now'], 'demo');
  await shootPlayground(browser, playground.url);
  await createManyEndpoints(folder, 200);
  const open = async (page: Page): Promise<void> => {
    await page.getByRole('button', { name: '207 objects' }).waitFor();
    await page.getByRole('button', { name: 'Endpoints shop/many-0', exact: true }).click();
    await page.getByText('name: many-0', { exact: true }).waitFor();
  };
  await shootState(browser, demo.url, '200-objects', open, { width: 1280, height: 640 });
  await shootState(
    browser,
    demo.url,
    'narrow',
    async (page) => {
      await page.getByLabel('Filter', { exact: true }).fill('a-name');
      await page.getByText('team-demo/a-name').waitFor();
    },
    { width: 390, height: 700 },
  );
  await browser.close();
}
rmSync(folder, { recursive: true });
