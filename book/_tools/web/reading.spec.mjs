// A long chapter, of which only what is near the screen is laid out (book.css): links and a search in the page lead to their very
// place, Tab reaches all that scrolls, paper has everything, and nothing of it was laid out before it was needed.
import { statSync } from 'node:fs';
import path from 'node:path';
import { chapters, COLUMN, expect, html, NARROW, open, test } from './book.mjs';

const LONGEST = chapters.reduce((a, b) => (statSync(path.join(html, a)).size >= statSync(path.join(html, b)).size ? a : b));
const BLOCKS = '.bd-article :is(section, .cell_output) > *';

test.use({ viewport: NARROW });

// Where a place stands when what comes near has been laid out, from the top of the screen.
async function settled(place) {
  let top, before;
  do {
    before = top;
    await place.page().waitForTimeout(200);
    top = (await place.boundingBox()).y;
  } while (top !== before);
  return top;
}

test('a first visit lays out the beginning of a long chapter', async ({ page }) => {
  await open(page, LONGEST);
  const { all, waiting } = await page.evaluate(blocks => {
    const found = [...document.querySelectorAll(blocks)].filter(block => getComputedStyle(block).contentVisibility === 'auto');
    const waiting = found.filter(block => !block.firstElementChild?.checkVisibility({ contentVisibilityAuto: true }));
    return { all: found.length, waiting: waiting.length };
  }, BLOCKS);
  expect.soft(all, 'blocks that may wait').toBeGreaterThan(50);
  expect.soft(waiting / all, 'those that do').toBeGreaterThan(0.5);
});

test('light or dark is settled before anything is seen', async ({ page }) => {
  await page.addInitScript(() => {
    window.themes = [];
    new MutationObserver(() => { if (document.body) window.themes.push(document.documentElement.dataset.theme); })
      .observe(document, { attributeFilter: ['data-theme'], subtree: true });
  });
  await page.emulateMedia({ colorScheme: 'dark' });
  await open(page, LONGEST);
  expect(await page.evaluate(() => [...new Set(window.themes)])).toEqual(['dark']);
});

for (const where of ['from outside', 'from the top of the page'])
  test(`anchors of a long chapter, ${where}`, async ({ page }) => {
    await page.goto(LONGEST);
    const anchors = await page.evaluate(() => [...document.querySelectorAll('article section[id], article .proof[id]')].map(place => place.id));
    for (const id of [anchors.at(-1), anchors[Math.floor(anchors.length / 2)], anchors[Math.floor(anchors.length / 4)]]) {
      if (where === 'from outside') {
        await page.goto('about:blank');
        await page.goto(`${LONGEST}#${id}`);
      } else {
        await page.evaluate(() => scrollTo(0, 0));
        await page.evaluate(id => document.querySelector(`.bd-article a[href="#${CSS.escape(id)}"]`).click(), id);
      }
      const top = await settled(page.locator(`[id="${id}"]`));
      const end = await page.evaluate(() => scrollY + innerHeight >= document.documentElement.scrollHeight - 1);
      expect.soft(top >= 0 && (top < NARROW.height / 4 || (end && top < NARROW.height)), `${id} stands at ${top} px`).toBe(true);
    }
  });

test('a search in a long chapter finds words far below, and shows them', async ({ page }) => {
  await page.goto(LONGEST);
  const words = await page.evaluate(() => [...document.querySelectorAll('.bd-article section > p')].at(-1).textContent.trim().slice(0, 25));
  expect(await page.evaluate(words => window.find(words), words), `“${words}” is found`).toBe(true);
  const place = page.locator('.bd-article section > p').last();
  const top = await settled(place);
  expect(top >= 0 && top < NARROW.height, `it stands at ${top} px`).toBe(true);
});

test('Tab reaches all that scrolls in a long chapter, and what is unfolded', async ({ page }) => {
  await page.goto(LONGEST);
  await page.evaluate(() => {
    window.seen = new Set();
    document.addEventListener('focusin', ({ target }) => window.seen.add(target));
    document.querySelectorAll('details.code').forEach((fold, k) => { fold.open = k % 4 === 0; });
  });
  for (let before = -1, reached = 0; reached > before;) {
    before = reached;
    await Promise.all(Array.from({ length: 20 }, () => page.keyboard.press('Tab')));
    reached = await page.evaluate(() => window.seen.size);
  }
  const missed = await page.evaluate(() => [...document.querySelectorAll('article *')]
    .filter(box => box.checkVisibility() && box.scrollWidth > box.clientWidth + 1 && /auto|scroll/.test(getComputedStyle(box).overflowX))
    .filter(box => !window.seen.has(box) && !box.querySelector('a[href], button, input, summary')).map(box => box.outerHTML.slice(0, 100)));
  expect(missed).toEqual([]);
});

test('paper has all of a long chapter', async ({ page }) => {
  await page.setViewportSize({ width: COLUMN, height: 900 });
  await page.goto(LONGEST);
  await page.emulateMedia({ media: 'print' });
  const waiting = await page.evaluate(blocks => [...document.querySelectorAll(blocks)]
    .filter(block => getComputedStyle(block).contentVisibility === 'auto').map(block => block.outerHTML.slice(0, 80)), BLOCKS);
  expect(waiting).toEqual([]);
});
