/** The page of the demo: both clusters live, and the sync of edits. */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { launchChromium } from './chromium.ts';
import { startCommand, type RunningCommand } from './command.ts';
import { overflowPx, seriousViolations } from './page-driver.ts';

const LIVE = { timeout: 30_000, interval: 100 };
const MAINFRAME = 'Endpoints shop/legacy-mainframe';
const COPY = 'Endpoints team-demo/legacy-mainframe-x-shop-x-demo';

let folder: string;
let browser: Browser;
let demo: RunningCommand;
let page: Page;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'endpoint-syncer-page-'));
  [browser, demo] = await Promise.all([launchChromium(), startCommand('demo', '--dir', folder)]);
  page = await browser.newPage();
  await page.goto(demo.url);
});
afterAll(async () => {
  await browser.close();
  await demo[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

test('objects that belong together are linked, and the log shows latencies', async () => {
  await expect.poll(() => page.locator('#host-objects').innerText(), LIVE).toContain(COPY);
  await expect.poll(() => page.locator('#links line').count(), LIVE).toBeGreaterThanOrEqual(3);
  await expect
    .poll(() => page.locator('#log').innerText(), LIVE)
    .toMatch(/shop\/db\s+host created\s+[\d.]+ ms/u);
  // Of every kind that is synced, Services included.
  await expect.poll(() => page.locator('#host-objects li:not(.created, .updated)').count(), LIVE).toBe(0);
});

test('an edit of the virtual object is synced to the host', async () => {
  await page.getByRole('button', { name: MAINFRAME }).click();
  const editor = page.getByRole('textbox', { name: 'Object', exact: true });
  const text = (await page.locator('#edit .cm-line').allInnerTexts()).join('\n');
  expect(text).toContain('ip: 192.0.2.7');
  await editor.click();
  await page.keyboard.press('ControlOrMeta+a');
  await page.keyboard.insertText(text.replace('ip: 192.0.2.7', 'ip: 192.0.2.99'));
  await page.getByRole('button', { name: 'Save' }).click();
  await expect.poll(() => page.locator('#edit-status').innerText(), LIVE).toBe('Saved.');
  // The editor shows the object as it was when it was opened.
  const openedCopy = async (): Promise<string> => {
    await page.getByRole('button', { name: COPY }).click();
    return (await page.locator('#edit .cm-line').allInnerTexts()).join('\n');
  };
  await expect.poll(openedCopy, LIVE).toContain('ip: 192.0.2.99');
});

test('the error of a rejected edit is shown', async () => {
  await page.getByRole('button', { name: MAINFRAME }).click();
  const text = (await page.locator('#edit .cm-line').allInnerTexts()).join('\n');
  await page.getByRole('textbox', { name: 'Object', exact: true }).click();
  await page.keyboard.press('ControlOrMeta+a');
  await page.keyboard.insertText(text.replace(/ip: \S+/u, 'ip: not-an-address'));
  await page.getByRole('button', { name: 'Save' }).click();
  await expect.poll(() => page.locator('#edit-status').innerText(), LIVE).toContain('not-an-address');
});

test.each([360, 1600])('at %i px it is accessible', async (width) => {
  await page.setViewportSize({ width, height: 900 });
  expect(await overflowPx(page)).toBeLessThanOrEqual(0);
  expect(await seriousViolations(page)).toEqual([]);
});
