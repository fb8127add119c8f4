/** Writes the screenshots of the README: `npm run screenshots`. */

import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser } from 'playwright-core';
import { launchChromium } from './chromium.ts';
import { startCommand } from './command.ts';

const IMAGES = join(import.meta.dirname, '../../docs/images');
const SIZE = { width: 1280, height: 800 };

/** `NAME.png` and `NAME-dark.png`. */
async function shoot(browser: Browser, url: string, ready: readonly string[], name: string): Promise<void> {
  for (const colorScheme of ['light', 'dark'] as const) {
    const page = await browser.newPage({ viewport: SIZE, colorScheme });
    await page.goto(url);
    for (const selector of ready) await page.locator(selector).first().waitFor();
    // The editors measure their lines after they are shown.
    await page.waitForTimeout(1000);
    const suffix = colorScheme === 'dark' ? '-dark' : '';
    await page.screenshot({ path: join(IMAGES, `${name}${suffix}.png`), fullPage: false });
    await page.close();
  }
}

const folder = mkdtempSync(join(tmpdir(), 'endpoint-syncer-screenshots-'));
mkdirSync(IMAGES, { recursive: true });
{
  await using playground = await startCommand('playground');
  await using demo = await startCommand('demo', '--dir', folder);
  const browser = await launchChromium();
  await shoot(browser, playground.url, ['#trace table'], 'playground');
  await shoot(browser, demo.url, ['#log tr:nth-child(6)', '#trace table'], 'demo');
  await browser.close();
}
rmSync(folder, { recursive: true });
