// Formulas, which were typeset when the book was built: what is copied has their TeX, a screen reader finds MathML, and they are
// there without script, as are the colours of the reader's system.
import { chapter, expect, FOLDER, test } from './book.mjs';

const PAGE = chapter('norm-bounds');
const formula = page => page.locator('.theorem div.math').first();

for (const [where, options] of [['over http', {}], ['from a folder', { baseURL: FOLDER }]])
  test.describe(`formulas ${where}`, () => {
    test.use(options);
    test('are copied as TeX, whole, with the text around them', async ({ page }) => {
      await page.goto(PAGE);
      const copied = await page.evaluate(() => new Promise(resolve => {
        const theorem = document.querySelector('.theorem'), half = theorem.querySelector('span.math svg');
        getSelection().setBaseAndExtent(half, 0, theorem, theorem.childNodes.length);
        document.addEventListener('copy', event => resolve(event.clipboardData.getData('text/plain')));
        document.execCommand('copy');
      }));
      expect(copied).toMatch(/^\$A\$ be an \$n\\times n\$ matrix/);
      expect(copied).toContain('\\sqrt{c_{\\max}}');
      expect(copied).toMatch(/\n/);
    });

    test('have MathML with the TeX beside the picture', async ({ page }) => {
      await page.goto(PAGE);
      await expect(formula(page).locator('svg')).toHaveAttribute('aria-hidden', 'true');
      await expect(formula(page).locator('math msqrt').first()).toBeAttached();
      expect(await formula(page).locator('annotation').textContent()).toContain('\\sqrt{c_{\\max}}');
    });
  });

test.describe('without script', () => {
  test.use({ javaScriptEnabled: false });
  for (const [colorScheme, dark] of [['light', false], ['dark', true]])
    test.describe(`${colorScheme}`, () => {
      test.use({ colorScheme });
      test('formulas, contents and tables are there, in the colours of the system', async ({ page }) => {
        await page.goto(PAGE);
        const { width, height } = await formula(page).locator('svg').boundingBox();
        expect.soft(width > 100 && height > 20, `a formula of ${width} by ${height} px`).toBe(true);
        await expect.soft(page.locator('.bd-sidebar-primary .toctree-l1 a').first()).toBeVisible();
        const [paper, ink] = await page.evaluate(() => [document.body, document.querySelector('h1')].map((element, k) => {
          const colour = getComputedStyle(element)[k ? 'color' : 'backgroundColor'];
          return colour.match(/\d+/g).slice(0, 3).reduce((sum, part) => sum + Number(part), 0);
        }));
        expect.soft(paper < 384, `the paper, ${paper}`).toBe(dark);
        expect.soft(ink < 384, `the ink, ${ink}`).toBe(!dark);
        await page.goto('book/notation.html');
        await expect(page.locator('table').first()).toBeVisible();
      });
    });
});
