// The search and the permalinks: every theorem is found by its title and every symbol by its spoken names, among the first results;
// these and systems lead to the very place; headings, theorems, exercises, solutions and figures have permalinks.
import { chapter, expect, FOLDER, NARROW, pages, test } from './book.mjs';

const FIRST = 5;   // results that are seen without scrolling, on a phone too
const TYPED = [['a sink forces the norm', 'causal-sink'], ['rate hardy', 'causal-hardy'], ['Cesaro matrix', 'symbol-C-sub-n'],
  ['varepsilon', 'symbol-epsilon'], ['layer normalization', 'the-sphere'], ['kv cache', 'a-trained-model-answers']];

// What every page offers to the search, with the anchors it must lead to, and what has no permalink that leads to itself.
// The pages are only read: none of their scripts runs.
async function read(page) {
  await page.goto('search.html');
  const found = await page.evaluate(names => Promise.all(names.map(async name => {
    const document = new DOMParser().parseFromString(await (await fetch(name)).text(), 'text/html');
    const text = element => element.textContent.trim().replace(/\s+/g, ' ');
    const linked = element => {
      const hash = element.querySelector('a.headerlink')?.getAttribute('href');
      return hash && element.closest('[id]') && element.closest('#' + CSS.escape(decodeURIComponent(hash.slice(1))));
    };
    const unlinked = [...document.querySelectorAll('section > :is(h1, h2, h3, h4, h5, h6), .admonition[id]:is(.proof, .exercise, .solution), figure[id]')]
      .filter(place => !linked(place)).map(place => `${name}: ${text(place).slice(0, 60)}`);
    const wanted = [...document.querySelectorAll('.proof.admonition[id]')].map(block => {
      const title = block.querySelector('.admonition-title');
      title.querySelectorAll('.caption-number, .headerlink').forEach(part => part.remove());
      return { query: text(title).slice(1, -1), anchor: block.id };   // it stands in brackets
    });
    const column = [...document.querySelectorAll('thead th')].findIndex(cell => text(cell) === 'spoken');
    if (column >= 0)
      for (const row of document.querySelectorAll('tbody tr'))
        for (const query of text(row.cells[column]).split(', ')) wanted.push({ query, anchor: row.id });
    return { unlinked, wanted: wanted.map(({ query, anchor }) => ({ query, place: `${name.replace(/\.html$/, '')}#${anchor}` })) };
  })), pages.filter(name => name.includes('/')));
  return { unlinked: found.flatMap(({ unlinked }) => unlinked), wanted: found.flatMap(({ wanted }) => wanted) };
}

// All of them at once, by the functions behind the search page, which returns its best result last.
async function ask(page, queries) {
  await page.waitForFunction(() => Search.hasIndex());
  return page.evaluate(([queries, count]) => queries.map(query => {
    history.replaceState(null, '', '?' + new URLSearchParams({ q: query }));   // scorer.js looks there
    return Search._performSearch(...Search._parseQuery(query)).slice(-count).map(([page, , anchor]) => page + anchor);
  }), [queries, FIRST]);
}

test('search finds every theorem and every spoken name, which have permalinks as all places', async ({ page }) => {
  const { unlinked, wanted } = await read(page);
  expect.soft(unlinked, 'places without a permalink').toEqual([]);
  expect.soft(wanted.length, 'theorems and spoken names that were read from the pages').toBeGreaterThan(100);
  const answers = await ask(page, wanted.map(({ query }) => query));
  expect.soft(wanted.filter(({ place }, k) => !answers[k].includes(place)), `not among the first ${FIRST} results`).toEqual([]);
});

test('search puts first, of chapters that weigh the same, the one with the words in its title', async ({ page }) => {
  await page.goto('search.html');
  const [results] = await ask(page, ['why divide by sqrt d']);
  expect(results.at(-1)).toBe(chapter('scaling').replace('.html', ''));
});

// As a reader does it: the keys that open the search, the words, Enter, and a click on the result.
for (const [where, options] of [['over http', {}], ['from a folder', { baseURL: FOLDER }]])
  test.describe(`search, typed ${where},`, () => {
    test.use({ viewport: NARROW, ...options });
    for (const [query, anchor] of TYPED)
      test(`“${query}” leads to ${anchor}`, async ({ page }) => {
        await page.goto('book/preface.html');
        await page.keyboard.press('Control+K');
        await page.keyboard.type(query);
        await page.keyboard.press('Enter');
        const result = page.locator(`ul.search a[href$="#${anchor}"]`);
        await expect(result, 'the result').toBeVisible();
        const { y, height } = await result.boundingBox();
        expect.soft(y + height, 'where the result ends, on the first screen').toBeLessThanOrEqual(NARROW.height);
        await result.click();
        const place = page.locator(`[id="${anchor}"]`);
        await expect(place).toBeVisible();
        await page.waitForLoadState('load');
        const top = (await place.boundingBox()).y;
        expect.soft(top >= 0 && top < NARROW.height, `the place is on the screen, at ${top} px`).toBe(true);
      });
  });

for (const selector of ['section:has(> h2)', '.proof.theorem', '.exercise', '.solution', 'figure'])
  test(`the permalink of ${selector} is shown by mouse and keyboard`, async ({ page }) => {
    await page.goto(chapter('causal'));
    const block = page.locator(selector).first(), link = block.locator('a.headerlink').first();
    await page.mouse.move(0, 0);
    await expect.soft(link, 'at rest').toHaveCSS('opacity', '0');
    await block.locator(':scope > :first-child').hover();
    await expect.soft(link, 'under the mouse').toHaveCSS('opacity', '1');
    await page.mouse.move(0, 0);
    await link.focus();
    await page.keyboard.press('Shift+Tab');
    await page.keyboard.press('Tab');
    await expect.soft(link, 'with the focus').toHaveCSS('opacity', '1');
  });

test('the link to a solution unfolds it', async ({ page }) => {
  await page.goto('book/exercises.html');
  const link = page.locator('a[href$="-solution"]').first();
  const [address, anchor] = (await link.evaluate(element => element.href)).split('#');
  const content = page.locator(`[id="${anchor}"] .admonition-title + *`);
  await page.goto(address);
  await expect(content, 'without the link').toBeHidden();
  await page.goBack();
  await link.click();
  await expect(content, 'with the link').toBeVisible();
});
