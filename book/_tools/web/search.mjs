// The search and the permalinks: every theorem is found by its title and every symbol by its spoken names, among the first results;
// these and systems lead to the very place; headings, theorems, exercises, solutions and figures have permalinks.
//   node search.mjs <folder of packages> <html folder>
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { openBook, pages, tally } from './modules.mjs';

const [packages, html] = process.argv.slice(2);
const { base, browser, close } = await openBook(packages, html);
const folder = pathToFileURL(path.resolve(html)).href + '/';
const FIRST = 5;   // results that are seen without scrolling, on a phone too
const TYPED = [['a sink forces the norm', 'causal-sink'], ['rate hardy', 'causal-hardy'], ['Cesaro matrix', 'symbol-C-sub-n'],
  ['varepsilon', 'symbol-epsilon'], ['layer normalization', 'the-sphere'], ['kv cache', 'a-trained-model-answers']];
const { found, expect, finish } = tally();

// What a page offers to the search, with the anchors it must lead to, and what has no permalink that leads to itself.
// The page is only read: none of its scripts runs.
async function read(page, name) {
  return page.evaluate(async name => {
    const document = new DOMParser().parseFromString(await (await fetch(name)).text(), 'text/html');
    const text = element => element.textContent.trim().replace(/\s+/g, ' ');
    const linked = element => {
      const hash = element.querySelector('a.headerlink')?.getAttribute('href');
      return hash && element.closest('[id]') && element.closest('#' + CSS.escape(decodeURIComponent(hash.slice(1))));
    };
    const places = [...document.querySelectorAll('section > :is(h1, h2, h3, h4, h5, h6), .admonition[id]:is(.proof, .exercise, .solution), figure[id]')]
      .map(place => ({ text: text(place), linked: Boolean(linked(place)) }));
    const wanted = [...document.querySelectorAll('.proof.admonition[id]')].map(block => {
      const title = block.querySelector('.admonition-title');
      title.querySelectorAll('.caption-number, .headerlink').forEach(part => part.remove());
      return { query: text(title).slice(1, -1), anchor: block.id };   // it stands in brackets
    });
    const column = [...document.querySelectorAll('thead th')].findIndex(cell => text(cell) === 'spoken');
    if (column >= 0)
      for (const row of document.querySelectorAll('tbody tr'))
        for (const query of text(row.cells[column]).split(', ')) wanted.push({ query, anchor: row.id });
    return { places, wanted: wanted.map(entry => ({ ...entry, page: name.replace(/\.html$/, '') })) };
  }, name);
}

// All of them at once, by the functions behind the search page, which returns its best result last.
async function ask(page, queries) {
  await page.waitForFunction(() => Search.hasIndex());
  return page.evaluate(([queries, count]) => queries.map(query => {
    history.replaceState(null, '', '?' + new URLSearchParams({ q: query }));   // scorer.js looks there
    return Search._performSearch(...Search._parseQuery(query)).slice(-count).map(([page, , anchor]) => page + anchor);
  }), [queries, FIRST]);
}

// As a reader does it: the keys that open the search, the words, Enter, and a click on the result.
async function type(root, query, anchor, how) {
  const page = await browser.newPage();
  page.on('pageerror', error => found.push(`${how}: ${query}: ${error.message}`));
  page.on('console', message => { if (message.type() === 'error') found.push(`${how}: ${query}: ${message.text()}`); });
  await page.setViewportSize({ width: 375, height: 800 });
  await page.goto(root + 'book/preface.html');
  await page.keyboard.press('Control+K');
  await page.keyboard.type(query);
  await page.keyboard.press('Enter');
  const result = page.locator(`ul.search a[href$="#${anchor}"]`);
  await result.waitFor({ timeout: 10000 }).catch(() => {});
  const box = await result.count() ? await result.boundingBox() : null;
  expect(box && box.y + box.height <= 800, `${how}: “${query}”, typed, does not show ${anchor} on the first screen`);
  if (box) {
    await result.click();
    const place = page.locator(`[id="${anchor}"]`);
    await place.waitFor({ timeout: 10000 }).catch(() => {});
    await page.waitForLoadState('load');
    const top = (await place.boundingBox())?.y ?? -1;
    expect(top >= 0 && top < 800, `${how}: the result for “${query}” does not lead to ${anchor}`);
  }
  await page.close();
}

// A permalink is seen when the mouse or the keyboard is there.
async function show(name, selector) {
  const page = await browser.newPage();
  await page.goto(base + name);
  const block = page.locator(selector).first(), link = block.locator('a.headerlink').first();
  const opacity = () => link.evaluate(element => getComputedStyle(element).opacity);
  await page.mouse.move(0, 0);
  const before = await opacity();
  await block.locator(':scope > :first-child').hover();
  const hovered = await opacity();
  await page.mouse.move(0, 0);
  await link.focus();
  await page.keyboard.press('Shift+Tab');
  await page.keyboard.press('Tab');
  expect(before === '0' && hovered === '1' && await opacity() === '1', `${name}: the permalink of ${selector} is not shown by mouse and keyboard`);
  await page.close();
}

// A solution is folded, until a link leads to it.
async function unfold(name) {
  const page = await browser.newPage();
  await page.goto(base + name);
  const link = page.locator('a[href$="-solution"]').first();
  const anchor = (await link.getAttribute('href')).split('#')[1];
  const content = page.locator(`[id="${anchor}"] .admonition-title + *`);
  await page.goto(base + (await link.evaluate(element => element.href)).slice(base.length).split('#')[0]);
  const folded = !await content.isVisible();
  await page.goBack();
  await link.click();
  expect(folded && await content.waitFor({ timeout: 10000 }).then(() => true, () => false), `${name}: the link to ${anchor} does not unfold it`);
  await page.close();
}

const page = await browser.newPage();
await page.goto(base + 'search.html');
const wanted = [];
for (const name of pages(html).filter(name => name.startsWith('book/') || name.startsWith('notebooks/'))) {
  const content = await read(page, name);
  for (const { text, linked } of content.places) expect(linked, `${name}: no permalink at “${text.slice(0, 60)}”`);
  wanted.push(...content.wanted);
}
expect(wanted.length > 100, `only ${wanted.length} theorems and spoken names were read from the pages`);
const answers = await ask(page, wanted.map(entry => entry.query));
wanted.forEach(({ query, page, anchor }, k) =>
  expect(answers[k].includes(`${page}#${anchor}`), `“${query}” does not find ${page}#${anchor} among the first ${FIRST} results`));
const [equals] = await ask(page, ['why divide by sqrt d']);
expect(equals.at(-1) === 'notebooks/attention/scaling', 'of chapters that weigh the same, the one with the words in its title does not come first');
await page.close();
for (const [query, anchor] of TYPED) {
  await type(base, query, anchor, 'over http');
  await type(folder, query, anchor, 'from a folder');
}
for (const selector of ['section:has(> h2)', '.proof.theorem', '.exercise', '.solution', 'figure']) await show('notebooks/spectrum/causal.html', selector);
await unfold('book/exercises.html');
await close();
finish(`search, of ${wanted.length} names`);
