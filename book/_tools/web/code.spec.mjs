// The code of the chapters: the choice that shows or hides all of it, and what opens a fold.
import { chapters, expect, FOLDER, NARROW, source, test } from './book.mjs';

const page = chapters.find(page => /<details class="code" open/.test(source(page)) && source(page).includes('<details class="code">'));
const states = page => page.locator('details.code').evaluateAll(folds => folds.map(fold => fold.open));
const choice = page => page.getByLabel('Code', { exact: true });

for (const [where, options] of [['over http', {}], ['from a folder', { baseURL: FOLDER }]])
  test.describe(where, () => {
    test.use(options);
    test('all code is shown or hidden by keyboard, on every chapter from then on', async ({ page: tab }) => {
      await tab.goto(page);
      const first = await states(tab);
      expect(new Set(first), 'as the tags say').toEqual(new Set([true, false]));
      await choice(tab).focus();
      await tab.keyboard.press('ArrowDown');
      expect(new Set(await states(tab)), 'all').toEqual(new Set([true]));
      await tab.goto(chapters.find(other => other !== page));
      expect(new Set(await states(tab)), 'on another chapter').toEqual(new Set([true]));
      await choice(tab).selectOption('none');
      expect(new Set(await states(tab)), 'none').toEqual(new Set([false]));
      await tab.goto(page);
      expect(new Set(await states(tab)), 'none, back on the first').toEqual(new Set([false]));
      await choice(tab).selectOption('');
      expect(await states(tab), 'as before').toEqual(first);
    });
  });

test('a page without code has no choice, and paper neither', async ({ page: tab }) => {
  await tab.goto('book/ledger.html');
  await expect(choice(tab)).toHaveCount(0);
  await tab.goto(page);
  await tab.emulateMedia({ media: 'print' });
  await expect(choice(tab)).toBeHidden();
});

test('what is searched for in the page opens what folds it', async ({ page: tab }) => {
  await tab.goto(chapters.find(page => /solution dropdown/.test(source(page))));
  const solution = tab.locator('.solution.toggle-hidden').first();
  expect(await solution.locator('section').first().getAttribute('hidden')).toBe('until-found');
  await solution.locator('section').first().dispatchEvent('beforematch');
  await expect(tab.locator('.solution').first()).not.toHaveClass(/toggle-hidden/);
  await expect(tab.locator('.solution section').first()).toBeVisible();
});

test.describe('without script', () => {
  test.use({ javaScriptEnabled: false, viewport: NARROW });
  test('a fold opens by itself, and there is no choice', async ({ page: tab }) => {
    await tab.goto(page);
    const fold = tab.locator('details.code:not([open])').first();
    const code = await fold.evaluate(element => [...document.querySelectorAll('details.code')].indexOf(element));
    await fold.locator('summary').click();
    await expect(tab.locator('details.code').nth(code).locator('.cell_input').first()).toBeVisible();
    await expect(choice(tab)).toHaveCount(0);
  });
});
