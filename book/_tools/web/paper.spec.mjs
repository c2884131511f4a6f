// A page of the book printed from the browser, in the dark theme: it is light, solutions are open, what works on
// screens only is away, nothing is wider than the paper, and afterwards the screen is as before.
import { chapter, COLUMN, expect, test } from './book.mjs';

test.use({ colorScheme: 'dark', viewport: { width: COLUMN, height: 900 } });

const theme = page => page.evaluate(() => document.documentElement.dataset.theme);
const look = page => page.evaluate(column => {
  const visible = selector => [...document.querySelectorAll(selector)].filter(element => element.checkVisibility({ visibilityProperty: true, opacityProperty: true }));
  const words = elements => elements.map(element => element.outerHTML.slice(0, 80));
  const open = visible('.solution section, #exercises pre:not(details.code *)');
  return {
    closed: words([...document.querySelectorAll('.solution section, #exercises pre:not(details.code *)')].filter(element => !open.includes(element))),
    screen: words(visible('button, form, summary p, .headerlink, .explorable')),
    wide: words(visible('article *').filter(element => element.getBoundingClientRect().right > column + 1 && !element.closest('math'))),
  };
}, COLUMN);

for (const name of [...['softmax', 'causal', 'logit-span'].map(chapter), 'book/ledger.html'])
  test(`${name} on paper`, async ({ page }) => {
    await page.goto(name);
    expect.soft(await theme(page), 'the theme on the screen').toBe('dark');
    const folded = await page.locator('.solution.toggle-hidden').count();

    await page.emulateMedia({ media: 'print', colorScheme: 'dark' });
    await page.evaluate(() => window.dispatchEvent(new Event('beforeprint')));
    const { closed, screen, wide } = await look(page);
    expect.soft(await theme(page), 'the theme on paper').toBe('light');
    expect.soft(closed, 'solutions or listings of the exercises that are closed on paper').toEqual([]);
    expect.soft(screen, 'what there is on paper, and works on screens only').toEqual([]);
    expect.soft(wide, 'wider than the paper').toEqual([]);

    await page.evaluate(() => window.dispatchEvent(new Event('afterprint')));
    await page.emulateMedia({ media: null, colorScheme: 'dark' });
    expect.soft(await theme(page), 'the theme after printing').toBe('dark');
    await expect.soft(page.locator('.solution.toggle-hidden'), 'solutions that are folded after printing').toHaveCount(folded);
  });
