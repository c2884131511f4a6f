// Every page, wide and narrow, light and dark: no formula is left as text, nothing is wider than the screen, and axe-core finds no
// violation of level A or AA. SHOTS names a folder for screenshots.
import path from 'node:path';
import { expect, NARROW, test, violations, visited, WIDE } from './book.mjs';

const VIEWS = { wide: WIDE, narrow: NARROW };
const AUDITED = ['light, wide', 'dark, narrow'];   // axe is slow: it sees both themes and both widths, once each

const look = page => page.evaluate(async () => {
  await document.fonts.ready;
  await new Promise(resolve => setTimeout(resolve, 200));
  await Promise.allSettled(document.getAnimations().filter(({ timeline }) => timeline === document.timeline).map(animation => animation.finished));   // buttons fade into the theme's colours
  return {
    untypeset: document.querySelectorAll('.math').length - document.querySelectorAll('.math > svg').length,
    overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    idle: [...document.querySelectorAll('span.math[tabindex]')].filter(formula => formula.firstElementChild.offsetWidth <= formula.clientWidth).length,
  };
});

for (const name of [...visited, 'search.html?q=norm'])   // the search with results
  test(`the page ${name}`, async ({ page }) => {
    for (const theme of ['light', 'dark']) {
      await page.emulateMedia({ colorScheme: theme });
      await page.setViewportSize(WIDE);
      await page.goto(name);
      for (const [width, viewport] of Object.entries(VIEWS)) {
        const view = `${theme}, ${width}`;
        await page.setViewportSize(viewport);
        const { untypeset, overflow, idle } = await look(page);
        expect.soft(untypeset, `${view}: formulas left as text`).toBe(0);
        expect.soft(overflow, `${view}: the page is wider than the screen, by px`).toBeLessThanOrEqual(0);
        expect.soft(idle, `${view}: formulas that the keyboard reaches, and that do not scroll`).toBe(0);
        if (process.env.SHOTS)
          await page.screenshot({ path: path.join(process.env.SHOTS, `${name.replace(/\.html$/, '').replaceAll('/', '_')}.${theme}.${width}.png`), fullPage: true });
        if (AUDITED.includes(view)) expect.soft(await violations(page), `${view}: axe`).toEqual([]);
      }
    }
  });
