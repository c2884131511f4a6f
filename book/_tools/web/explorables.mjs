// Move every figure that can be moved, with mouse and keyboard, in a wide window and a narrow one, and complain where the drawing
// or the numbers shown do not follow, and where a drawing does not fit. The states it passes through are written to a file with
// what the page computed for them, for explorables.py to hold against the library.
//   node explorables.mjs <folder of packages> <html folder> <file to write>      (environment: CHROME)
import fs from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { openBook, pages } from './modules.mjs';

const [packages, html, file] = process.argv.slice(2);
const RANDOM_STATES = 20, WIDE = { width: 1280, height: 900 };

const { browser, close } = await openBook(packages, html);
const found = [], states = [];
let moved = 0;

// The same random numbers in every run.
let seed = 1;
const random = () => { seed = (seed * 48271) % 2147483647; return seed / 2147483647; };

const settled = page => page.evaluate(() => new Promise(resolve => requestAnimationFrame(() => requestAnimationFrame(resolve))));
const look = (page, name) => page.evaluate(name => {
  const box = document.querySelector(`[data-explorable="${name}"]`);
  const state = Explore.shown[name];
  const result = Explore.known[name].compute(state);
  const numbers = Explore.known[name].numbers(state, result).map(([, value]) => Explore.format(value));
  return {
    state, result, numbers, shown: [...box.querySelectorAll('.numbers dd')].map(entry => entry.textContent),
    drawing: [...box.querySelectorAll('svg')].map(svg => svg.innerHTML).join() + box.querySelector('.says').textContent,
    controls: [...box.querySelectorAll('.controls input, .controls output')].map(part => `${part.value} ${part.checked}`).join(),
    bad: /NaN|undefined|Infinity/.exec(box.innerHTML)?.[0],
    outside: [...box.querySelectorAll('.view > svg')].flatMap(svg => {
      const edge = svg.getBoundingClientRect();
      return [...svg.querySelectorAll('text, path, rect, circle')].filter(shape => {
        const { left, right, top, bottom } = shape.getBoundingClientRect();
        return left < edge.left - 2 || right > edge.right + 2 || top < edge.top - 2 || bottom > edge.bottom + 2;
      });
    }).map(shape => shape.textContent || shape.parentElement.getAttribute('class') || shape.getAttribute('class'))[0],
    wide: Math.max(box.scrollWidth - box.clientWidth, document.documentElement.scrollWidth - innerWidth),
  };
}, name);

async function move(page, name, address) {
  const box = page.locator(`[data-explorable="${name}"]`);
  const complain = text => found.push(`${address}: ${name}: ${text}`);
  const record = async () => {
    await settled(page);
    const seen = await look(page, name);
    states.push({ name, state: seen.state, result: seen.result });
    if (seen.numbers.join() !== seen.shown.join()) complain(`shows ${seen.shown}, but computes ${seen.numbers}`);
    if (seen.bad) complain(`shows ${seen.bad} at ${JSON.stringify(seen.state)}`);
    if (seen.outside) complain(`${seen.outside} lies outside the drawing at ${JSON.stringify(seen.state)}`);
    if (seen.wide > 0) complain(`is too wide by ${seen.wide} px at ${JSON.stringify(seen.state)}`);
    return seen;
  };
  const first = await record();
  let before = first.drawing;
  const step = async (what, action) => {
    await action();
    const { drawing: after } = await record();
    if (after === before) complain(`${what} changes nothing`);
    before = after;
    moved += 1;
  };

  const controls = box.locator('.controls input, .controls button[name]');
  for (let i = 0; i < await controls.count(); i += 1) {
    const control = controls.nth(i), label = await control.getAttribute('name');
    const atEnd = await control.evaluate(input => input.value === input.max);
    const key = { range: atEnd ? 'ArrowLeft' : 'ArrowRight', checkbox: 'Space', button: 'Enter' }[await control.getAttribute('type')];
    await step(`${label} by keyboard`, async () => { await control.focus(); await page.keyboard.press(key); });
    if (key.startsWith('Arrow'))
      for (const end of ['Home', 'End']) await step(`${label} by ${end}`, () => page.keyboard.press(end));
    else await step(`${label} by mouse`, () => control.click());
  }
  if (await box.locator('svg.draggable').count())
    await step('dragging the view', async () => {
      const { x, y } = await box.locator('svg.draggable').boundingBox();
      await page.mouse.move(x + 100, y + 100);
      await page.mouse.down();
      await page.mouse.move(x + 140, y + 120, { steps: 3 });
      await page.mouse.up();
    });

  const handles = box.locator('.handle');
  for (let i = 0; i < Math.min(2, await handles.count()); i += 1) {
    const handle = handles.nth(i);
    await step('a handle by keyboard', async () => { await handle.focus(); await page.keyboard.press('ArrowUp'); });
    await step('a handle by mouse', async () => {
      const { x, y, width, height } = await handle.boundingBox();
      await page.mouse.move(x + width / 2, y + height / 2);
      await page.mouse.down();
      await page.mouse.move(x + width / 2, y + height / 2 - 40, { steps: 3 });
      await page.mouse.up();
    });
  }

  const said = box.getByRole('status').filter({ hasText: await box.locator('.says').textContent() });
  await said.waitFor({ state: 'attached', timeout: 3000 }).catch(() => complain('the sentence is not read out'));

  await box.getByRole('button', { name: 'Reset' }).click();
  const reset = await record();
  if (reset.drawing !== first.drawing || reset.controls !== first.controls) complain('Reset does not lead back');
  before = reset.drawing;

  await step('a narrow window', () => page.setViewportSize({ width: 375, height: 900 }));
  for (let i = 0; i < RANDOM_STATES; i += 1) {
    const draws = Array.from({ length: 40 }, random);
    await box.evaluate((element, draws) => {
      for (const input of element.querySelectorAll('.controls input')) {
        const draw = draws.pop();
        if (input.type === 'checkbox') input.checked = draw < 0.5;
        else input.value = Number(input.min) + draw * (Number(input.max) - Number(input.min));
        input.dispatchEvent(new Event('input', { bubbles: true }));
      }
    }, draws);
    await record();
  }
  await page.setViewportSize(WIDE);
}

for (const name of pages(html)) {
  const names = [...fs.readFileSync(path.join(html, name), 'utf8').matchAll(/data-explorable="([^"]+)"/g)].map(match => match[1]);
  if (!names.length) continue;
  const page = await browser.newPage();
  page.on('pageerror', error => found.push(`${name}: script error: ${error.message}`));
  await page.setViewportSize(WIDE);
  await page.goto(pathToFileURL(path.resolve(html, name)).href);   // from a folder: no server is needed
  await page.evaluate(() => window.MathJax?.startup?.promise);
  for (const explorable of names) await move(page, explorable, name);
  await page.emulateMedia({ media: 'print' });
  for (const explorable of names) {
    const box = page.locator(`[data-explorable="${explorable}"]`);
    if (await box.isVisible() || !await box.locator('xpath=preceding-sibling::figure[1]').isVisible()) found.push(`${name}: ${explorable}: in print there is not the figure alone`);
  }
  await page.close();

  const plain = await (await browser.browser().newContext({ javaScriptEnabled: false })).newPage();
  await plain.goto(pathToFileURL(path.resolve(html, name)).href);
  for (const explorable of names)
    if (await plain.locator(`[data-explorable="${explorable}"]`).isVisible()) found.push(`${name}: ${explorable}: without script there is an empty box`);
  await plain.context().close();
}
await close();

fs.writeFileSync(file, JSON.stringify(states));
console.log(found.join('\n') || `${new Set(states.map(state => state.name)).size} figures moved ${moved} times, ${states.length} states`);
process.exit(found.length ? 1 : 0);
