// Print a page of the book from the browser, in the dark theme: it is light, solutions and checkers are open, what works on
// screens only is away, nothing is wider than the paper, and afterwards the screen is as before.
//   node paper.mjs <folder of packages> <html folder>
import { openBook, tally } from './modules.mjs';

const [packages, html] = process.argv.slice(2);
const PAGES = ['notebooks/attention/softmax.html', 'notebooks/spectrum/causal.html', 'notebooks/spectrum/logit-span.html', 'book/ledger.html'];
const COLUMN = 642;   // A4 less the margins of print.css, in pixels of 1/96 inch
const { expect, finish } = tally();

const { base, browser, close } = await openBook(packages, html);
const page = await browser.newPage();
await page.emulateMedia({ colorScheme: 'dark' });
await page.setViewportSize({ width: COLUMN, height: 900 });
for (const name of PAGES) {
  await page.goto(base + name);
  await page.evaluate(() => window.MathJax.startup.promise);
  expect(await page.evaluate(() => document.documentElement.dataset.theme) === 'dark', `${name}: is not dark on the screen`);
  const folded = await page.locator('.solution.toggle-hidden').count();

  await page.emulateMedia({ media: 'print', colorScheme: 'dark' });
  await page.evaluate(() => window.dispatchEvent(new Event('beforeprint')));
  const seen = await page.evaluate(column => {
    const visible = selector => [...document.querySelectorAll(selector)].filter(element => element.checkVisibility({ visibilityProperty: true, opacityProperty: true }));
    const count = selector => document.querySelectorAll(selector).length;
    return {
      theme: document.documentElement.dataset.theme,
      closed: count('.solution section, #exercises pre') - visible('.solution section, #exercises pre').length,
      screen: visible('button, form, summary p, .headerlink, .explorable').map(element => element.outerHTML.slice(0, 80)),
      wide: visible('article *').filter(element => element.getBoundingClientRect().right > column + 1 && !element.closest('mjx-assistive-mml'))
        .map(element => element.outerHTML.slice(0, 80)),
    };
  }, COLUMN);
  expect(seen.theme === 'light', `${name}: is ${seen.theme} on paper`);
  expect(!seen.closed, `${name}: ${seen.closed} solutions or listings of the exercises are closed on paper`);
  expect(!seen.screen.length, `${name}: on paper there is ${seen.screen[0]}`);
  expect(!seen.wide.length, `${name}: wider than the paper: ${seen.wide[0]}`);

  await page.evaluate(() => window.dispatchEvent(new Event('afterprint')));
  await page.emulateMedia({ media: null, colorScheme: 'dark' });
  expect(await page.evaluate(() => document.documentElement.dataset.theme) === 'dark', `${name}: is not dark after printing`);
  expect(await page.locator('.solution.toggle-hidden').count() === folded, `${name}: solutions stay open after printing`);
}
await close();
finish('on paper');
