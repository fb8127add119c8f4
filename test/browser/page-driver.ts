/** Actions of a user on the page, which find elements by visible text or accessible name. */

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import type { Page } from 'playwright-core';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** Replaces the text of an editor by typing. */
export async function typeInto(page: Page, label: string, text: string): Promise<void> {
  await page.getByRole('textbox', { name: label, exact: true }).click();
  await page.keyboard.press('ControlOrMeta+a');
  // Chromium gives inserted text the style of the text that it replaces, as a style attribute, which the page's policy blocks.
  await page.keyboard.press('Delete');
  // The editor does not indent text that is inserted in one piece.
  await page.keyboard.insertText(text);
}

export async function chooseExample(page: Page, title: string): Promise<void> {
  await page.getByLabel('Example').selectOption(title);
}

/** The text of a read-only view, without what was removed from the original. */
export async function resultText(page: Page): Promise<string> {
  const lines = await page.locator('#result .cm-line').allInnerTexts();
  return lines.join('\n');
}

/** The accessible name that the focused element sets itself. */
export async function focusedLabel(page: Page): Promise<string | null> {
  return page.evaluate<string | null>('document.activeElement.getAttribute("aria-label")');
}

/** Accessibility violations that are serious or worse, as `rule: element`. */
export async function seriousViolations(page: Page): Promise<string[]> {
  await page.evaluate(AXE);
  const found = await page.evaluate<{ id: string; impact: string; nodes: { html: string }[] }[]>(
    'axe.run().then(({ violations }) => violations)',
  );
  return found
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html}`));
}

/** The page must not scroll sideways. */
export async function overflowPx(page: Page): Promise<number> {
  return page.evaluate<number>('document.documentElement.scrollWidth - document.documentElement.clientWidth');
}

/** Creates Endpoints in a cluster of the demo. `folder`: its `--dir`. */
export async function createEndpoints(
  folder: string,
  cluster: 'virtual' | 'host',
  { namespace, name, ip }: { readonly namespace: string; readonly name: string; readonly ip: string },
): Promise<void> {
  const kubeconfig = readFileSync(join(folder, `${cluster}.kubeconfig`), 'utf8');
  const [server = ''] = /http:[^"\s]+/u.exec(kubeconfig) ?? [];
  const response = await fetch(`${server}/api/v1/namespaces/${namespace}/endpoints`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      apiVersion: 'v1',
      kind: 'Endpoints',
      metadata: { name },
      subsets: [{ addresses: [{ ip, hostname: `${name.slice(0, 50)}-0` }], ports: [{ port: 80 }] }],
    }),
  });
  if (!response.ok) throw new Error(await response.text());
}

/** Creates virtual Endpoints in the demo, the last one with a very long name. */
export async function createManyEndpoints(folder: string, count: number): Promise<void> {
  for (let at = 0; at < count; at++) {
    const name = at === count - 1 ? `a-name-that-is-${'very-'.repeat(30)}long` : `many-${at}`;
    await createEndpoints(folder, 'virtual', { namespace: 'shop', name, ip: `10.30.0.${at}` });
  }
}
