// Use the buttons above a page as a reader would, with the mouse, with the keyboard alone, without script and from a folder:
// the citation opens, can be copied and closes again, and each chapter's notebook that is downloaded is the committed one.
//   node buttons.mjs <folder of packages> <html folder>      (environment: CHROME), in the folder of the book
import fs from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { openBook, pages, tally, violations } from './modules.mjs';

const [packages, html] = process.argv.slice(2);
const { base, browser, close } = await openBook(packages, html);
await browser.grantPermissions(['clipboard-read', 'clipboard-write']);
const chapters = pages(html).filter(name => name.startsWith('notebooks/'));
const FOLDER = pathToFileURL(path.resolve(html)).href + '/';
const committed = name => name.replace(/\.html$/, '.ipynb');
const CITE = 'button[popovertarget=cite]:not([popovertargetaction])';
const { found, expect, finish } = tally();

// Opens by keyboard, says the page's title, copies both forms, and closes by Escape and by its button.
async function cite(start, theme, name, title, entry) {
  const where = start + name;
  const page = await browser.newPage();
  page.on('pageerror', error => found.push(`${where}: ${error.message}`));
  await page.emulateMedia({ colorScheme: theme });
  await page.setViewportSize({ width: 375, height: 800 });
  await page.goto(where);
  const dialog = page.getByRole('dialog', { name: 'How to cite this page' });
  expect(!await dialog.isVisible(), `${where}: the citation is open from the start`);
  const cite = page.getByRole('button', { name: 'Cite', exact: true });
  for (let presses = 0; presses < 80 && !await cite.evaluate(button => button === document.activeElement); presses++) await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  expect(await dialog.isVisible(), `${where}: the citation does not open by keyboard`);
  const box = await dialog.boundingBox();
  expect(box && box.x >= 0 && box.y >= 0 && box.x + box.width <= 375, `${where}: the citation is wider than the screen`);

  const texts = await dialog.locator('pre').allTextContents();
  expect(texts.length === 2 && texts[0].includes(title) && texts[1].startsWith(entry), `${where}: the citation reads ${texts}`);
  for (const [number, text] of texts.entries()) {
    const copy = dialog.locator('button.copybtn').nth(number);
    expect(await copy.evaluate(button => getComputedStyle(button).opacity === '1'), `${where}: the button that copies is not seen`);
    await copy.focus();
    await page.keyboard.press('Enter');
    await page.waitForTimeout(100);
    const copied = await page.evaluate(() => navigator.clipboard.readText());
    expect(copied.trim() === text.trim(), `${where}: copied was ${copied}`);
    expect(await copy.evaluate(button => button === document.activeElement), `${where}: copying loses the place of the keyboard`);
  }
  const wrong = await violations(page, packages, '#cite');
  expect(!wrong.length, `${where}: ${wrong.map(({ help }) => help)} (${theme})`);
  await page.keyboard.press('Escape');
  expect(!await dialog.isVisible(), `${where}: Escape does not close the citation`);
  if (!await dialog.isVisible()) await cite.click();
  await dialog.getByRole('button', { name: 'Close' }).click();
  expect(!await dialog.isVisible(), `${where}: the citation's own button does not close it`);
  await page.close();
}

// Without script it opens too.
async function plain(name) {
  const page = await browser.newPage();
  await (await browser.newCDPSession(page)).send('Emulation.setScriptExecutionDisabled', { value: true });
  await page.goto(base + name);
  await page.click(CITE);
  expect(await page.locator('#cite pre').first().isVisible(), `${name}: the citation does not open without script`);
  await page.close();
}

// All buttons above a page stand within a narrow screen, and that for the notebook saves it.
async function above(name) {
  const page = await browser.newPage();
  await page.setViewportSize({ width: 375, height: 800 });
  await page.goto(base + name);
  const boxes = await page.locator('.bd-header-article :is(a, button):visible').evaluateAll(all => all.map(one => one.getBoundingClientRect()));
  expect(boxes.every(({ left, right, top, bottom }) => left >= 0 && right <= 375 && top >= 0 && bottom <= 60), `${name}: the buttons above the page do not fit`);
  const [file] = await Promise.all([page.waitForEvent('download'), page.getByRole('link', { name: 'Notebook', exact: true }).click()]);
  expect(file.suggestedFilename() === path.basename(committed(name)), `${name}: the notebook is called ${file.suggestedFilename()}`);
  expect(fs.readFileSync(await file.path()).equals(fs.readFileSync(committed(name))), `${name}: the notebook is not the committed one`);
  await page.close();
}

// The notebook that a chapter's page links to is the committed one.
function linked(name) {
  const file = path.join(html, name);
  const link = fs.readFileSync(file, 'utf8').match(/href="([^"]*\.ipynb)" download/)?.[1];
  expect(link && fs.readFileSync(path.join(path.dirname(file), link)).equals(fs.readFileSync(committed(name))), `${name}: links to another notebook`);
}

// From a folder a browser shows the notebook rather than saving it: it is the file that lies there.
async function fromFolder(name) {
  const page = await browser.newPage();
  await page.goto(FOLDER + name, { waitUntil: 'domcontentloaded' });
  await page.getByRole('link', { name: 'Notebook', exact: true }).click();
  await page.waitForURL(`${FOLDER}_sources/${committed(name)}`);
  expect(await page.locator('pre').textContent() === fs.readFileSync(committed(name), 'utf8'), `${name}: its notebook in the folder is another`);
  await page.close();
}

for (const [start, theme] of [[base, 'light'], [FOLDER, 'dark']]) {
  await cite(start, theme, 'notebooks/spectrum/causal.html', 'What does it cost to look back only?', '@incollection{deep-dive-transformer-causal,');
  await cite(start, theme, 'book/index.html', 'Deep Dive into the Transformer', '@misc{deep-dive-transformer,');
}
await plain('notebooks/spectrum/causal.html');
await above(chapters[0]);
chapters.forEach(linked);
await fromFolder(chapters[0]);
await close();
finish('buttons');
