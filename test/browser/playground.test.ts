/** The playground in a browser: editing, results, sharing, accessibility. */

import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { launchChromium } from './chromium.ts';
import { startCommand, type RunningCommand } from './command.ts';
import {
  chooseExample,
  focusedLabel,
  overflowPx,
  resultText,
  seriousViolations,
  typeInto,
} from './page-driver.ts';

const OWNER = 'metadata.annotations["example.com/owner"]';
const RESULT = { timeout: 60_000, interval: 50 };

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
      .poll(() => page.locator('#patches-problems').innerText(), RESULT)
      .toMatch(/line 2: .*expression/u);
    await expect.poll(() => page.locator('#patches .cm-lintRange-error').count(), RESULT).toBeGreaterThan(0);
    expect(await resultText(page)).toContain('team-checkout');
    await page.getByText('result of the last valid input').waitFor();
    expect(await page.locator('#output.stale').count()).toBe(1);
    await typeInto(page, 'Patches', `- path: ${OWNER}\n  expression: value\n`);
    await expect.poll(() => page.locator('#output.stale').count(), RESULT).toBe(0);
    await page.getByText('result of the last valid input').waitFor({ state: 'detached' });
  });

  test('ten problems are counted below their editor, and each leads to its line', async () => {
    const patches = Array.from(
      { length: 10 },
      (_, at) => `- path: metadata.annotations.a${at}\n  expression: value.nope(\n`,
    );
    await typeInto(page, 'Patches', patches.join(''));
    await page.getByText('10 problems').waitFor();
    await page.getByRole('button', { name: /^line 20:/u }).click();
    await expect.poll(() => page.locator('#patches .cm-activeLine').innerText(), RESULT).toContain('nope');
    expect(await focusedLabel(page)).toBe('Patches');
    expect(await page.locator('#virtual-problems, #host-problems').allInnerTexts()).toEqual(['', '']);
  });

  test('a patch that fails leaves the result of the others, and strikes nothing out', async () => {
    await typeInto(
      page,
      'Patches',
      `- path: ${OWNER}\n  expression: value.nope()\n- path: subsets[*].addresses[*].hostname\n  expression: '"edge-" + value'\n`,
    );
    await expect.poll(() => resultText(page), RESULT).toContain('hostname: edge-web-0');
    // What the host has there would stay, and there is no copy yet.
    expect(await resultText(page)).not.toContain('example.com/owner');
    expect(await page.locator('#notes').innerText()).toContain(
      'patches[0] fails on Endpoints team-a/web-x-shop-x-my-vcluster: the daemon leaves out its path; the error is in the trace',
    );
    expect(await page.locator('#notes').innerText()).not.toContain('patches[1]');
    expect(await page.locator('#result .cm-deletedChunk').allInnerTexts()).not.toContainEqual(
      expect.stringContaining('kind: Endpoints'),
    );
  });

  test('the caret of an error is in a monospaced font, under the identifier', async () => {
    await typeInto(page, 'Patches', `- path: ${OWNER}\n  expression: value.nope()\n`);
    const excerpt = page.locator('#trace .failed pre:not(.message)');
    await excerpt.waitFor();
    const [source = '', caret = ''] = (await excerpt.innerText()).split('\n');
    expect(caret.indexOf('^')).toBe(source.indexOf('nope'));
    expect(await page.locator('#patches-problems .failure').innerText()).toContain(`${source}\n${caret}`);
    const style = 'getComputedStyle(document.querySelector("#trace .failed pre:not(.message)"))';
    expect(await page.evaluate(`${style}.fontFamily`)).toContain('monospace');
    expect(await page.evaluate(`${style}.whiteSpace`)).toBe('pre');
  });

  test('a patch that matches nothing names the nearest path', async () => {
    await typeInto(page, 'Patches', '- path: subsets[*].adresses[*].ip\n  expression: value\n');
    await expect
      .poll(() => page.locator('#trace').innerText(), RESULT)
      .toContain('the nearest path that exists is subsets.0');
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
    expect(await page.locator('#result-title').innerText()).toBe('Result in the virtual cluster');
  });

  test('without a host object, the reverse direction starts from what the patches make', async () => {
    await page.getByLabel('host → virtual').check();
    const host = page.locator('#host .cm-content');
    await expect.poll(() => host.innerText(), RESULT).toContain('example.com/owner: team-checkout');
    await expect.poll(() => resultText(page), RESULT).toContain('example.com/owner: checkout');
    expect(await page.locator('#notes li').count()).toBe(0);
    expect(await page.locator('#trace').innerText()).toContain('no change that flows back');
    expect(await page.locator('#input .cm-content').first().getAttribute('aria-label')).toBe(
      'Existing host object',
    );
    const text = (await page.locator('#host .cm-line').allInnerTexts()).join('\n');
    await typeInto(page, 'Existing host object', text.replace('team-checkout', 'team-payments'));
    await expect.poll(() => resultText(page), RESULT).toContain('example.com/owner: payments');
    await page.getByLabel('virtual → host').check();
    expect(await page.locator('#input .cm-content').first().getAttribute('aria-label')).toBe('Patches');
  });

  test('a difference shows changes only, in the order of the virtual object, without managed fields', async () => {
    await typeInto(page, 'Patches', `- path: ${OWNER}\n  expression: '"team-" + value'\n`);
    await typeInto(
      page,
      'Virtual object',
      `kind: Endpoints
apiVersion: v1
metadata:
  managedFields: [{manager: kubectl, operation: Update}]
  annotations: {z: "1", example.com/owner: checkout, a: "2"}
  namespace: shop
  name: web
subsets: [{ports: [{port: 80, protocol: TCP}], addresses: [{hostname: web-0, ip: 10.0.0.1}]}]
`,
    );
    await expect.poll(() => page.locator('#result .cm-content').innerText(), RESULT).toContain('z: "1"');
    await expect
      .poll(() => page.locator('#result .cm-changedLine').allInnerTexts(), RESULT)
      .toEqual([
        '    example.com/owner: team-checkout',
        '  namespace: team-a',
        '  name: web-x-shop-x-my-vcluster',
      ]);
    expect(await page.locator('#result').innerText()).not.toContain('managedFields');
  });

  test('a page without an object says what to do', async () => {
    await typeInto(page, 'Virtual object', '');
    await expect
      .poll(() => page.locator('#notes').innerText(), RESULT)
      .toBe('there is no object to sync: paste an object of kind Endpoints or EndpointSlice');
    expect(await page.locator('#result').innerText()).toBe('Nothing is written.');
  });

  test('a run that takes long says so', async () => {
    await page.route('**/api/run', async (route) => {
      await page.getByText('running…').waitFor();
      await route.continue();
    });
    await typeInto(page, 'Patches', `- path: ${OWNER}\n  expression: value + "!"\n`);
    await expect.poll(() => resultText(page), RESULT).toContain('checkout!');
    await page.getByText('running…').waitFor({ state: 'detached' });
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
  test('says that it loads, and why it cannot', async () => {
    const other = await browser.newPage();
    const state: { answer?: () => void } = {};
    const answered = new Promise<void>((resolve) => (state.answer = resolve));
    await other.route('**/api/start', async (route) => {
      await answered;
      await route.fulfill({ status: 400, body: 'out of order' });
    });
    await other.goto(playground.url);
    await other.getByText('Loading…').waitFor();
    state.answer?.();
    await expect
      .poll(() => other.locator('#loading').innerText(), RESULT)
      .toBe('The page cannot load: out of order');
    await other.close();
  });

  test('gives every pane a name of its own', async () => {
    const headings = await page.locator('h3:visible').allInnerTexts();
    expect(new Set(headings.map((text) => text.split('\n')[0])).size).toBe(headings.length);
    const labels = await page.evaluate(
      '[...document.querySelectorAll("[role=textbox]")].map((one) => one.getAttribute("aria-label"))',
    );
    expect(labels).toEqual(['Patches', 'Virtual object', 'Existing host object', 'Result']);
  });

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
    expect(await focusedLabel(page)).toBe('Virtual object');
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
