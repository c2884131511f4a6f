// The filters of the ledger and of the index of systems, used as a reader would, with the mouse, with the keyboard alone, by a link,
// without script and from a folder: the rows that are then seen are the right ones.
import { expect, FOLDER, NARROW, test } from './book.mjs';

const PAGES = [   // the facets, which rows are settled, and the link that each of these must have
  { name: 'book/ledger.html', facets: ['verdict', 'part', 'notes'], settled: 'tr', link: 'a[href*="#claim-"]' },
  { name: 'book/systems.html', facets: ['kind', 'part', 'state'], settled: 'tr.state-is-works', link: 'a[href*="#"]' },
];
const ROWS = 'table.filtered tbody tr';

const look = page => page.evaluate(ROWS => {
  const rows = [...document.querySelectorAll(ROWS)];
  const shown = rows.filter(row => row.checkVisibility());
  const emptied = [...document.querySelectorAll('.hidden-when-empty')].filter(section => section.checkVisibility() && !section.querySelector('tbody tr:not([hidden])'));
  return {
    all: rows.length, ids: shown.map(row => row.id), classes: shown.map(row => [...row.classList]), emptied: emptied.length,
    status: document.querySelector('form.filters output').value, query: location.search, focus: document.activeElement.getAttribute('name'),
  };
}, ROWS);
const values = (page, facet) => page.locator(`select[name=${facet}] option`).evaluateAll(options => options.map(option => option.value).filter(Boolean));

// Some rows are seen, fewer than there are, and the page says how many.
function expectSome(seen, what) {
  expect.soft(seen.ids.length, `${what}: some rows`).toBeGreaterThan(0);
  expect.soft(seen.ids.length, `${what}: not all rows`).toBeLessThan(seen.all);
  expectCount(seen, what);
}
const expectCount = (seen, what) => expect.soft(seen.status, `${what}: the count that is shown`).toMatch(new RegExp(`^${seen.ids.length} of ${seen.all} `));

for (const { name, facets, settled, link } of PAGES)
  test.describe(`the filters of ${name}`, () => {
    test('begin with all rows, and each value shows those that have it', async ({ page }) => {
      await page.goto(name);
      const { ids: all, ...first } = await look(page);
      expect.soft(all.length, 'rows at first').toBe(first.all);
      expect.soft(all.length, 'rows at first').toBeGreaterThan(200);
      expectCount({ ids: all, ...first }, 'at first');
      const reasons = page.locator(`table.filtered tbody ${settled}`);
      expect.soft(await reasons.count(), 'settled rows').toBeGreaterThan(0);
      await expect.soft(reasons.filter({ hasNot: page.locator(link) }), 'settled rows without a link to where that was done').toHaveCount(0);
      for (const facet of facets) {
        const reached = new Set();
        for (const value of await values(page, facet)) {
          await page.selectOption(`select[name=${facet}]`, value);
          const seen = await look(page);
          seen.ids.forEach(id => reached.add(id));
          expect.soft(seen.ids.length, `${facet} ${value}: the rows that have it`).toBe(await page.locator(`table.filtered tr.${facet}-is-${value}`).count());
          expect.soft(seen.classes.filter(names => !names.includes(`${facet}-is-${value}`)), `${facet} ${value}: other rows`).toEqual([]);
          expect.soft(seen.emptied, `${facet} ${value}: sections without rows`).toBe(0);
          expectCount(seen, `${facet} ${value}`);
        }
        expect.soft(all.filter(id => !reached.has(id)), `rows that have no ${facet} that can be chosen`).toEqual([]);
        await page.selectOption(`select[name=${facet}]`, '');
      }
    });

    test('find words as they are typed, in any order and case', async ({ page }) => {
      await page.goto(name);
      const words = page.locator('form.filters input');
      const find = async text => {
        await words.fill('');
        await words.pressSequentially(text);
        return (await look(page)).ids.length;
      };
      const one = await find('Softmax'), two = await find('Softmax attention');
      expect.soft(one, 'rows with one word').toBeLessThan(await page.locator(ROWS).count());
      expect.soft(two, 'rows with two words').toBeLessThan(one);
      expect.soft(two, 'rows with two words').toBeGreaterThan(0);
      expect.soft(await find('ATTENTION softmax'), 'in another order and case').toBe(two);
      expect.soft(await find('zzz'), 'rows with what nothing has').toBe(0);
      expect.soft(await find('\\sqrt'), 'rows with a formula').toBeGreaterThan(0);
      await page.click('form.filters button');
      await expect.soft(page.locator(`${ROWS}[hidden]`), 'rows that are hidden when all is cleared').toHaveCount(0);
      expect.soft((await look(page)).query, 'the address of a choice that was cleared').toBe('');
    });

    test('can be linked to, and give way to a link to a row', async ({ page }) => {
      await page.goto(name);
      const all = (await look(page)).ids;
      await page.selectOption('select[name=part]', (await values(page, 'part'))[0]);
      await page.fill('form.filters input', 'norm');
      const chosen = await look(page);
      expectSome(chosen, 'a part and a word');
      await page.goto(name + chosen.query);
      expect.soft((await look(page)).ids, 'what the address brings back').toEqual(chosen.ids);
      const hidden = all.find(id => !chosen.ids.includes(id));
      await page.evaluate(id => { location.hash = id; }, hidden);
      await expect(page.locator(`[id="${hidden}"]`), 'a row that is linked to').toBeVisible();
    });

    test.describe('from a folder', () => {
      test.use({ baseURL: FOLDER });
      test('show the rows of a part', async ({ page }) => {
        await page.goto(name);
        await page.selectOption('select[name=part]', (await values(page, 'part'))[0]);
        expectSome(await look(page), 'a part');
      });
    });

    test.describe('with the keyboard alone', () => {
      test.use({ viewport: NARROW });
      test('every control is reached and does what it says', async ({ page }) => {
        await page.goto(name);
        for (let presses = 0, reached; presses < 80 && reached !== 'words'; presses += 1) {
          await page.keyboard.press('Tab');
          reached = (await look(page)).focus;
        }
        await expect(page.locator('[name=words]'), 'the search').toBeFocused();
        await page.keyboard.type('softmax');
        const searched = (await look(page)).ids.length;
        for (const facet of facets) {
          await page.keyboard.press('Tab');
          await expect.soft(page.locator(`select[name=${facet}]`), facet).toBeFocused();
          if (facet === facets[0]) await page.keyboard.press('ArrowDown');
        }
        const seen = await look(page);
        expect.soft(seen.ids.length, 'rows after a choice').toBeLessThan(searched);
        expectCount(seen, 'a choice');
        await page.keyboard.press('Tab');
        await page.keyboard.press('Enter');
        await expect.soft(page.locator(`${ROWS}[hidden]`), 'rows that are hidden after the button').toHaveCount(0);
        expect.soft(await page.locator('form.filters [name]').evaluateAll(controls => controls.filter(control => !control.labels.length).map(control => control.name)), 'controls without a label').toEqual([]);
      });
    });

    test.describe('without script', () => {
      test.use({ javaScriptEnabled: false });
      test('every row is there, and no control that could do nothing', async ({ page }) => {
        await page.goto(name);
        const rows = await page.locator(ROWS).count();
        expect.soft(rows).toBeGreaterThan(200);
        await expect.soft(page.locator(`${ROWS}:visible`)).toHaveCount(rows);
        await expect.soft(page.locator('form.filters')).toBeHidden();
      });
    });
  });
