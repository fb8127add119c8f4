/** The playground in a browser: editing, results, sharing, accessibility. */

import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { launchChromium } from './chromium.ts';
import { startCommand, type RunningCommand } from './command.ts';
import { chooseExample, overflowPx, resultText, seriousViolations, typeInto } from './page-driver.ts';

const OWNER = 'metadata.annotations["example.com/owner"]';
const RESULT = { timeout: 15_000, interval: 50 };

let browser: Browser;
let playground: RunningCommand;
let page: Page;
let pageErrors: string[];

beforeAll(async () => {
  [browser, playground] = await Promise.all([launchChromium(), startCommand('playground')]);
});
afterAll(async () => {
  await browser.close();
  await playground[Symbol.asyncDispose]();
});
beforeEach(async () => {
  page = await browser.newPage({ permissions: ['clipboard-read', 'clipboard-write'] });
  pageErrors = [];
  page.on('pageerror', ({ message }) => pageErrors.push(message));
  page.on('console', (message) => {
    if (message.type() === 'error') pageErrors.push(message.text());
  });
  await page.goto(playground.url);
  await page.getByText('web-x-shop-x-my-vcluster').first().waitFor();
});
afterEach(async () => {
  await page.close();
  if (pageErrors.length > 0) throw new Error(`errors in the page: ${pageErrors.join('; ')}`);
});

describe('patches', () => {
  test('an edit of a patch changes the host object, and the trace shows the values before and after', async () => {
    await typeInto(page, 'Patches', `- path: ${OWNER}\n  expression: value.toUpperCase()\n`);
    await expect.poll(() => resultText(page), RESULT).toContain('example.com/owner: CHECKOUT');
    const trace = await page.locator('#trace').innerText();
    expect(trace).toContain('metadata.annotations."example.com/owner"');
    expect(trace).toContain('"checkout" → "CHECKOUT"');
  });

  test('an invalid patch is marked at its line, and the last result stays', async () => {
    await typeInto(page, 'Patches', `- path: ${OWNER}\n  expresion: value\n`);
    await expect
      .poll(() => page.locator('#notes').innerText(), RESULT)
      .toMatch(/patches line 2: .*expression/u);
    await expect.poll(() => page.locator('#patches .cm-lintRange-error').count(), RESULT).toBeGreaterThan(0);
    expect(await resultText(page)).toContain('team-checkout');
  });

  test('a patch that fails shows the caret in its expression', async () => {
    await typeInto(page, 'Patches', `- path: ${OWNER}\n  expression: value.nope()\n`);
    await expect
      .poll(() => page.locator('#trace .failed').innerText(), RESULT)
      .toMatch(/not a function[\s\S]*\^/u);
  });

  test('a patch that matches nothing names the nearest path', async () => {
    await typeInto(page, 'Patches', '- path: subsets[*].adresses[*].ip\n  expression: value\n');
    await expect
      .poll(() => page.locator('#trace').innerText(), RESULT)
      .toContain('the nearest path that exists is subsets.0');
  });

  test('an infinite loop fails, and the page still works', async () => {
    await typeInto(page, 'Patches', `- path: ${OWNER}\n  expression: (() => { while (true) {} })()\n`);
    await expect.poll(() => page.locator('#trace .failed').innerText(), RESULT).toContain('timeout');
    await typeInto(page, 'Patches', `- path: ${OWNER}\n  expression: value + "!"\n`);
    await expect.poll(() => resultText(page), RESULT).toContain('checkout!');
  });

  test('completion offers the paths of the object', async () => {
    await typeInto(page, 'Patches', '- path: ');
    await page.keyboard.type('subsets');
    await expect
      .poll(() => page.locator('.cm-tooltip-autocomplete').allInnerTexts(), RESULT)
      .toEqual([expect.stringContaining('subsets[*].addresses[*].ip')]);
  });
});

describe('runs', () => {
  test('the reverse direction shows the virtual object', async () => {
    await chooseExample(page, 'Expression, host to virtual');
    await expect.poll(() => resultText(page), RESULT).toContain('example.com/owner: payments');
    expect(await page.locator('#result-title').innerText()).toBe('Virtual object');
  });

  test('every example gives a result without a problem', async () => {
    const titles = await page.getByLabel('Example').locator('option').allInnerTexts();
    expect(titles.length).toBeGreaterThan(12);
    for (const title of titles) {
      await chooseExample(page, title);
      await expect.poll(() => page.locator('#trace > li').count(), RESULT).toBeGreaterThan(0);
      await expect.poll(() => page.locator('body[aria-busy]').count(), RESULT).toBe(0);
      const problems = await page.locator('#notes .error, #trace .failed').allInnerTexts();
      expect({ title, problems }).toEqual({ title, problems: [] });
    }
  });
});

describe('other kinds', () => {
  test('an EndpointSlice is synced with the patches of its kind, and traced', async () => {
    await chooseExample(page, 'EndpointSlice');
    await expect.poll(() => resultText(page), RESULT).toContain('hostname: web-0-my-vcluster');
    expect(await resultText(page)).toContain('kind: EndpointSlice');
    expect(await page.locator('#trace').innerText()).toContain('"web-1" → "web-1-my-vcluster"');
    await page.getByRole('button', { name: 'Copy as configuration' }).click();
    await expect.poll(() => page.locator('#copied').innerText(), RESULT).toBe('Copied.');
    expect(await page.evaluate('navigator.clipboard.readText()')).toMatch(
      /^ {4}endpointSlices:\n {6}enabled: true\n {6}patches:\n {8}- path: endpoints/mu,
    );
  });

  test('the objects of a configuration with several kinds are all shown, each with its trace', async () => {
    await chooseExample(page, 'Configuration for several kinds');
    await expect.poll(() => resultText(page), RESULT).toContain('kind: EndpointSlice');
    const trace = await page.locator('#trace').innerText();
    expect(trace).toContain('of Endpoints team-a/web-x-shop-x-my-vcluster');
    expect(trace).toContain('of EndpointSlice team-a/web-1-x-shop-x-my-vcluster');
  });

  test('a kind that is not synced is named', async () => {
    await typeInto(page, 'Virtual object', 'apiVersion: v1\nkind: Pod\nmetadata: {name: web}\n');
    await expect
      .poll(() => page.locator('#notes').innerText(), RESULT)
      .toContain('Pod default/web is not synced: Pod is not a kind that endpoint-syncer syncs');
  });
});

describe('sharing', () => {
  test('a link opens the same state', async () => {
    await typeInto(page, 'Patches', `- path: ${OWNER}\n  expression: '"shared"'\n`);
    await expect.poll(() => resultText(page), RESULT).toContain('shared');
    await page.getByRole('button', { name: 'Copy link' }).click();
    await expect.poll(() => page.locator('#copied').innerText(), RESULT).toBe('Copied.');
    const link = await page.evaluate<string>('navigator.clipboard.readText()');
    const other = await browser.newPage();
    await other.goto(link);
    await expect.poll(() => resultText(other), RESULT).toContain('example.com/owner: shared');
    await other.close();
  });

  test('the configuration is copied in the format of the file', async () => {
    await page.getByRole('button', { name: 'Copy as configuration' }).click();
    await expect.poll(() => page.locator('#copied').innerText(), RESULT).toBe('Copied.');
    expect(await page.evaluate('navigator.clipboard.readText()')).toMatch(
      /^sync:\n {2}toHost:\n {4}endpoints:\n {6}patches:\n {8}- path: /u,
    );
  });
});

describe('the page', () => {
  test.each([
    [360, 'light'],
    [1600, 'light'],
    [360, 'dark'],
    [1600, 'dark'],
  ] as const)('at %i px in %s is readable and accessible', async (width, colorScheme) => {
    await page.setViewportSize({ width, height: 900 });
    await page.emulateMedia({ colorScheme });
    expect(await overflowPx(page)).toBeLessThanOrEqual(0);
    expect(await seriousViolations(page)).toEqual([]);
  });

  test('is used by keyboard: the Tab key leaves an editor', async () => {
    await page.getByRole('textbox', { name: 'Patches', exact: true }).focus();
    await page.keyboard.press('Tab');
    const label = await page.evaluate<string>('document.activeElement.getAttribute("aria-label")');
    expect(label).toBe('Virtual object');
  });
});

describe('other sites', () => {
  const attempt = (headers: Record<string, string>): Promise<number> =>
    fetch(`${playground.url}api/run`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: '{}',
    }).then(({ status }) => status);

  test.each([
    ['another origin', { origin: 'http://evil.example' }],
    ['another port of this machine', { origin: 'http://127.0.0.1:1' }],
    ['no origin', {}],
  ])('a request of %s is denied', async (_, headers) => {
    expect(await attempt(headers)).toBe(403);
  });

  test('a request of the page itself is served', async () => {
    expect(await attempt({ origin: playground.url.replace(/\/$/u, '') })).toBe(200);
  });
});
