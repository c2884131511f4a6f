// Use the filters of the ledger and of the index of systems as a reader would, with the mouse, with the keyboard alone, by a
// link, without script and from a folder, and complain where the rows that are then seen are not the right ones.
//   node filters.mjs <folder of packages> <html folder>      (environment: CHROME)
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { openBook, tally } from './modules.mjs';

const [packages, html] = process.argv.slice(2);
const { base, browser, close } = await openBook(packages, html);
const PAGES = [   // the facets, one of the parts, which rows are settled, and the link that each of these must have
  { name: 'book/ledger.html', facets: ['verdict', 'part', 'notes'], part: 'normalisation', settled: 'tr:not(.verdict-is-not-yet-examined)', link: 'a[href*="#cell-"]' },
  { name: 'book/systems.html', facets: ['kind', 'part', 'state'], part: 'attention', settled: 'tr.state-is-works', link: 'a[href*="#"]' },
];
const { found, expect, finish } = tally();

const look = page => page.evaluate(() => {
  const rows = [...document.querySelectorAll('table.filtered tbody tr')];
  const shown = rows.filter(row => row.checkVisibility());
  const emptied = [...document.querySelectorAll('.hidden-when-empty')].filter(section => section.checkVisibility() && !section.querySelector('tbody tr:not([hidden])'));
  return {
    all: rows.length, ids: shown.map(row => row.id), classes: shown.map(row => [...row.classList]), emptied: emptied.length,
    status: document.querySelector('form.filters output').value, query: location.search, focus: document.activeElement.getAttribute('name'),
  };
});
const says = seen => seen.status.startsWith(`${seen.ids.length} of ${seen.all} `);

async function choose({ name, facets, part, link, settled }) {
  const page = await browser.newPage();
  await page.goto(base + name);
  await page.evaluate(() => window.MathJax?.startup?.promise);
  let seen = await look(page);
  const all = seen.ids;
  expect(all.length === seen.all && all.length > 200 && says(seen), `${name}: does not begin with all rows`);
  expect(await page.locator(`table.filtered tbody ${settled}`).evaluateAll((rows, link) => rows.length && rows.every(row => row.querySelector(link)), link),
    `${name}: a row does not link to the place where it was settled`);

  // Every value of every facet shows just the rows that have it, and each row has a value of each facet.
  for (const facet of facets) {
    const values = await page.locator(`select[name=${facet}] option`).evaluateAll(options => options.map(option => option.value).filter(Boolean));
    const reached = new Set();
    for (const value of values) {
      await page.selectOption(`select[name=${facet}]`, value);
      seen = await look(page);
      seen.ids.forEach(id => reached.add(id));
      const having = await page.locator(`table.filtered tr.${facet}-is-${value}`).count();
      expect(seen.ids.length === having && seen.classes.every(names => names.includes(`${facet}-is-${value}`)), `${name}: ${facet} ${value} shows other rows`);
      expect(says(seen) && !seen.emptied, `${name}: ${facet} ${value}: a wrong count, or a section without rows`);
    }
    expect(reached.size === all.length, `${name}: ${all.length - reached.size} rows have no ${facet} that can be chosen`);
    await page.selectOption(`select[name=${facet}]`, '');
  }

  // Words narrow as they are typed, in any order and case; what nothing has shows nothing.
  const search = page.locator('form.filters input');
  const sizes = [];
  for (const words of ['Softmax', 'Softmax attention', 'ATTENTION softmax', 'zzz']) {
    await search.fill('');
    await search.pressSequentially(words);
    sizes.push((await look(page)).ids.length);
  }
  expect(all.length > sizes[0] && sizes[0] > sizes[1] && sizes[1] === sizes[2] && sizes[2] > 0 && sizes[3] === 0, `${name}: searches find ${sizes} rows`);
  await search.fill('\\sqrt');
  expect((await look(page)).ids.length > 0, `${name}: formulas are not searched`);
  await page.click('form.filters button');
  await page.waitForFunction(count => document.querySelectorAll('table.filtered tbody tr:not([hidden])').length === count, all.length);
  expect((await look(page)).query === '', `${name}: the address keeps a choice that was cleared`);

  // A choice can be linked to, together with words; a link to a row that it hides shows the row.
  await page.selectOption('select[name=part]', part);
  await search.fill('norm');
  const chosen = await look(page);
  await page.goto(base + name + chosen.query);
  seen = await look(page);
  expect(chosen.ids.length > 0 && chosen.ids.length < all.length && String(seen.ids) === String(chosen.ids), `${name}: the address does not bring back the choice`);
  const hidden = all.find(id => !seen.ids.includes(id));
  await page.evaluate(id => { location.hash = id; }, hidden);
  await page.waitForFunction(id => document.getElementById(id).checkVisibility(), hidden, { timeout: 3000 }).catch(() => found.push(`${name}: a linked row stays hidden`));
  await page.close();
}

// With the keyboard alone: from the search field through every control, and a choice made on the way.
async function type({ name, facets }) {
  const page = await browser.newPage();
  await page.setViewportSize({ width: 375, height: 800 });
  await page.goto(base + name);
  let seen;
  for (let presses = 0; presses < 80; presses++) {
    await page.keyboard.press('Tab');
    seen = await look(page);
    if (seen.focus === 'words') break;
  }
  expect(seen.focus === 'words', `${name}: the search cannot be reached with the keyboard`);
  await page.keyboard.type('softmax');
  const searched = (await look(page)).ids.length;
  for (const facet of facets) {
    await page.keyboard.press('Tab');
    expect((await look(page)).focus === facet, `${name}: ${facet} cannot be reached with the keyboard`);
    if (facet === facets[0]) await page.keyboard.press('ArrowDown');
  }
  seen = await look(page);
  expect(searched > seen.ids.length && says(seen), `${name}: a choice made with the keyboard does nothing`);
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => !document.querySelector('table.filtered tbody tr[hidden]'), undefined, { timeout: 3000 })
    .catch(() => found.push(`${name}: the button cannot be pressed with the keyboard`));
  const names = await page.locator('form.filters [name]').evaluateAll(controls => controls.filter(control => !control.labels.length).length);
  expect(names === 0, `${name}: ${names} controls have no label`);
  await page.close();
}

// Without script every row is there, and no control that could do nothing.
async function plain({ name }) {
  const page = await browser.newPage();
  await (await browser.newCDPSession(page)).send('Emulation.setScriptExecutionDisabled', { value: true });
  await page.goto(base + name);
  const [rows, visible] = [await page.locator('table.filtered tbody tr').count(), await page.locator('table.filtered tbody tr:visible').count()];
  expect(rows === visible && rows > 200 && !(await page.locator('form.filters').isVisible()), `${name}: not complete without script`);
  await page.close();
}

// The same from a folder, without a server.
async function fromFolder({ name, part }) {
  const page = await browser.newPage();
  page.on('pageerror', error => found.push(`${name}, opened as a file: ${error.message}`));
  await page.goto(pathToFileURL(path.resolve(html, name)).href);
  await page.selectOption('select[name=part]', part);
  const seen = await look(page);
  expect(seen.ids.length > 0 && seen.ids.length < seen.all && says(seen), `${name}: does not filter when opened as a file`);
  await page.close();
}

for (const page of PAGES) {
  await choose(page);
  await type(page);
  await plain(page);
  await fromFolder(page);
}
await close();
finish('filters');
