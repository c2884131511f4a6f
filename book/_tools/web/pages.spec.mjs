// Every page, opened once: as on a first visit by a phone in the dark, then at a desk by day, and at last by the Tab key alone. What the
// visit costs and moves, what of a chapter's height is open code, whether all formulas are typeset and nothing is wider than the screen,
// what axe-core finds at levels A and AA, and what the keyboard misses. SHOTS names a folder for screenshots.
import fs from 'node:fs';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import { chapters, expect, html, layOut, NARROW, open, source, test, violations, visited, WIDE } from './book.mjs';
import { keyboard } from './keyboard.mjs';

const SENT = 500_000, STORED = 2_000_000, SHIFT = 0.05;   // of a chapter: bytes compressed, bytes on the disk, layout shift
const OPEN = 0.15;   // of a chapter's height, at the width of a desk, is open code at most

const THEMES = ['dark', 'light'], WIDTHS = { narrow: NARROW, wide: WIDE };
const AUDITED = ['dark, narrow', 'light, wide'];   // axe is slow: it sees both themes and both widths, once each

test.use({ viewport: NARROW, colorScheme: THEMES[0] });

// Runs in the page before its scripts.
function observe() {
  window.shift = 0;
  new PerformanceObserver(list => {
    for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.shift += entry.value;
  }).observe({ type: 'layout-shift', buffered: true });
}

// Runs in the page, when it has taken the theme and the width.
async function look() {
  await document.fonts.ready;
  await new Promise(resolve => requestAnimationFrame(() => requestAnimationFrame(resolve)));
  await Promise.allSettled(document.getAnimations().filter(({ timeline }) => timeline === document.timeline).map(animation => animation.finished));   // buttons fade into the theme's colours
  return {
    theme: document.documentElement.dataset.theme,
    formulas: document.querySelectorAll('.math').length - document.querySelectorAll('.math > svg[aria-hidden="true"] + math').length,
    overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    idle: [...document.querySelectorAll('span.math[tabindex]')].filter(formula => formula.scrollWidth <= formula.clientWidth).length,
  };
}

// Runs in the page.
function openCode() {
  const height = element => element.getBoundingClientRect().height;
  return [...document.querySelectorAll('details.code[open] > .cell_input')].reduce((sum, code) => sum + height(code), 0) / height(document.querySelector('article'));
}

async function firstVisit(page, name, asked) {
  const files = [...asked].map(address => path.join(html, address));
  const sent = files.map(file => gzipSync(fs.readFileSync(file)).length).reduce((sum, size) => sum + size, 0);
  expect.soft(sent, `bytes of ${files.length} files, compressed`).toBeLessThanOrEqual(SENT);
  expect.soft(Buffer.byteLength(source(name)), 'bytes of the page on the disk').toBeLessThanOrEqual(STORED);
  expect.soft([...asked].filter(address => /fontawesome\.js|searchindex|mathjax|\.map$/.test(address)), 'what no first visit needs').toEqual([]);
  expect.soft(await page.evaluate(() => window.shift), 'layout shift').toBeLessThan(SHIFT);
}

for (const name of [...visited, 'search.html?q=norm'])   // the search with results
  test(`the page ${name}`, async ({ page }) => {
    const asked = new Set(), isChapter = chapters.includes(name);
    page.on('response', response => asked.add(decodeURIComponent(new URL(response.url()).pathname)));
    await page.addInitScript(observe);
    await test.step('opened', () => open(page, name));
    if (isChapter) await test.step('first visit', () => firstVisit(page, name, asked));
    const asOpened = await layOut(page);
    for (const colorScheme of THEMES)
      for (const [width, viewport] of Object.entries(WIDTHS)) {
        const view = `${colorScheme}, ${width}`;
        await test.step('look', async () => {
          await page.emulateMedia({ colorScheme });
          await page.setViewportSize(viewport);
          const { theme, formulas, overflow, idle } = await page.evaluate(look);
          expect.soft(theme, `${view}: the theme`).toBe(colorScheme);
          expect.soft(formulas, `${view}: formulas left as text, or without MathML beside the picture`).toBe(0);
          expect.soft(overflow, `${view}: the page is wider than the screen, by px`).toBeLessThanOrEqual(0);
          expect.soft(idle, `${view}: formulas that the keyboard reaches, and that do not scroll`).toBe(0);
        });
        if (process.env.SHOTS)
          await page.screenshot({ path: path.join(process.env.SHOTS, `${name.replace(/\.html$/, '').replaceAll('/', '_')}.${colorScheme}.${width}.png`), fullPage: true });
        if (AUDITED.includes(view)) await test.step('axe', async () => expect.soft(await violations(page), `${view}: axe`).toEqual([]));
      }
    if (isChapter) await test.step('open code', async () => {
      const share = await page.evaluate(openCode);
      console.log(`open code in ${path.basename(name, '.html')}: ${(100 * share).toFixed(0)} % of its height`);
      expect.soft(share, 'the share of open code').toBeLessThanOrEqual(OPEN);
    });
    await asOpened();
    await test.step('keyboard', () => keyboard(page));
  });
