// The buttons above a page, used as a reader would, with the mouse, with the keyboard alone, without script and from a folder: the
// citation opens, can be copied and closes again, and each chapter's notebook that is downloaded is the reader's edition.
import fs from 'node:fs';
import path from 'node:path';
import { chapter, chapters, expect, FOLDER, html, NARROW, source, test, violations } from './book.mjs';

const committed = name => name.replace(/\.html$/, '.ipynb');
const edition = name => committed(name);   // beside the page, where the committed one lies in the checkout

const CITED = [[chapter('causal'), 'What does it cost to look back only?', '@incollection{deep-dive-transformer-causal,'],
  ['book/index.html', 'Deep Dive into the Transformer', '@misc{deep-dive-transformer,']];
for (const [where, options] of [['over http', { colorScheme: 'light' }], ['from a folder', { colorScheme: 'dark', baseURL: FOLDER }]])
  test.describe(`the citation, ${where},`, () => {
    test.use({ viewport: NARROW, permissions: ['clipboard-read', 'clipboard-write'], ...options });
    for (const [name, title, entry] of CITED)
      test(`of ${name} opens, is copied, and closes`, async ({ page }) => {
        await page.goto(name);
        const dialog = page.getByRole('dialog', { name: 'How to cite this page' });
        await expect.soft(dialog, 'from the start').toBeHidden();
        const cite = page.getByRole('button', { name: 'Cite', exact: true });
        for (let presses = 0; presses < 80 && !await cite.evaluate(button => button === document.activeElement); presses += 1) await page.keyboard.press('Tab');
        await page.keyboard.press('Enter');
        await expect(dialog, 'opened by keyboard').toBeVisible();
        const { x, y, width } = await dialog.boundingBox();
        expect.soft(x >= 0 && y >= 0 && x + width <= NARROW.width, 'it stands within the screen').toBe(true);

        const texts = await dialog.locator('pre').allTextContents();
        expect.soft(texts, 'a text and an entry').toEqual([expect.stringContaining(title), expect.stringMatching(new RegExp(`^${entry}`))]);
        for (const [number, text] of texts.entries()) {
          const copy = dialog.locator('button.copybtn').nth(number);
          await expect.soft(copy, 'the button that copies is seen').toHaveCSS('opacity', '1');
          await copy.focus();
          await page.keyboard.press('Enter');
          await expect.poll(() => page.evaluate(() => navigator.clipboard.readText().then(copied => copied.trim())), 'what was copied').toBe(text.trim());
          await expect.soft(copy, 'copying keeps the place of the keyboard').toBeFocused();
        }
        expect.soft(await violations(page, '#cite'), 'axe').toEqual([]);
        await page.keyboard.press('Escape');
        await expect(dialog, 'closed by Escape').toBeHidden();
        await cite.click();
        await dialog.getByRole('button', { name: 'Close' }).click();
        await expect(dialog, 'closed by its button').toBeHidden();
      });
  });

test.describe('without script', () => {
  test.use({ javaScriptEnabled: false });
  test('the citation opens', async ({ page }) => {
    await page.goto(chapter('causal'));
    await page.click('button[popovertarget=cite]:not([popovertargetaction])');
    await expect(page.locator('#cite pre').first()).toBeVisible();
  });
});

test.describe('on a narrow screen', () => {
  test.use({ viewport: NARROW });
  test('the buttons above a page fit, and that for the notebook saves it', async ({ page }) => {
    const [name] = chapters;
    await page.goto(name);
    const boxes = await page.locator('.bd-header-article :is(a, button):visible').evaluateAll(all => all.map(one => one.getBoundingClientRect().toJSON()));
    expect.soft(boxes.filter(({ left, right, top, bottom }) => left < 0 || right > NARROW.width || top < 0 || bottom > 60), 'buttons that do not fit').toEqual([]);
    const [file] = await Promise.all([page.waitForEvent('download'), page.getByRole('link', { name: 'Notebook', exact: true }).click()]);
    expect.soft(file.suggestedFilename()).toBe(path.basename(edition(name)));
    expect(fs.readFileSync(await file.path()).equals(fs.readFileSync(path.join(html, edition(name)))), "the notebook is the reader's edition").toBe(true);
  });
});

for (const name of chapters)
  test(`the notebook that ${name} links to is its edition, which leads to the committed one`, () => {
    const [, link] = source(name).match(/href="([^"]*\.ipynb)" download/), folder = path.join(html, path.dirname(name));
    const [, whole] = fs.readFileSync(path.join(folder, link), 'utf8').match(/\[the whole notebook\]\(([^)]*)\)/);
    expect(path.join(folder, link)).toBe(path.join(html, edition(name)));
    expect(fs.readFileSync(path.join(folder, whole)).equals(fs.readFileSync(committed(name)))).toBe(true);
  });

// There a browser shows the notebook rather than saving it: it is the file that lies there.
test.describe('from a folder', () => {
  test.use({ baseURL: FOLDER });
  test('the button for the notebook leads to it', async ({ page }) => {
    const [name] = chapters;
    await page.goto(name, { waitUntil: 'domcontentloaded' });
    await page.getByRole('link', { name: 'Notebook', exact: true }).click();
    await page.waitForURL(edition(name));
    expect(await page.locator('pre').textContent() === fs.readFileSync(path.join(html, edition(name)), 'utf8'), "the notebook is the reader's edition").toBe(true);
  });
});
