// Every figure that can be moved, with mouse and keyboard, in a wide window and a narrow one, from a folder: the drawing and the
// numbers shown follow, a drawing fits, and the numbers in all the states it passes through are the library's. The address leads
// back to what is shown, and all that is written is compared with book/explore/labels (LABELS=1 writes it).
import fs from 'node:fs';
import { spawnSync } from 'node:child_process';
import { chapters, expect, FOLDER, NARROW, source, test, visited, WIDE } from './book.mjs';

test.use({ baseURL: FOLDER, viewport: WIDE });

const RANDOM_STATES = 20;
const boxOf = name => `[data-explorable="${name}"]`;
const figures = chapters.flatMap(page => [...source(page).matchAll(/data-explorable="([^"]+)"/g)].map(([, name]) => ({ name, page })));

test('every figure that is listed is on a page', () => {
  const listed = fs.readFileSync('book/explore/figures.yml', 'utf8').matchAll(/^- name: (\S+)$/gm);
  const names = figures.map(({ name }) => name).sort();
  expect(names).toEqual([...listed].map(([, name]) => name).sort());
  expect(fs.readdirSync('book/explore/labels').sort(), 'the files of labels').toEqual(names.map(name => `${name}.txt`));
});

// The same random numbers in every run.
function generator(seed) {
  return () => { seed = (seed * 48271) % 2147483647; return seed / 2147483647; };
}

// Runs in the page, when what was done has been drawn.
async function look(name) {
  await new Promise(resolve => requestAnimationFrame(() => requestAnimationFrame(resolve)));
  const box = document.querySelector(`[data-explorable="${name}"]`);
  const state = Explore.shown[name];
  const result = Explore.known[name].compute(state);
  const numbers = Explore.known[name].numbers(state, result).map(([, value]) => Explore.format(value));
  return {
    state, result, numbers, shown: [...box.querySelectorAll('.numbers dd')].map(entry => entry.textContent),
    drawing: [...box.querySelectorAll('svg')].map(svg => svg.innerHTML).join() + box.querySelector('.says').textContent,
    controls: [...box.querySelectorAll('.controls input, .controls output')].map(part => `${part.value} ${part.checked}`),
    bad: box.innerHTML.match(/NaN|undefined|Infinity/g),
    outside: [...box.querySelectorAll('.view > svg')].flatMap(svg => {
      const edge = svg.getBoundingClientRect();
      return [...svg.querySelectorAll('text, path, rect, circle')].filter(shape => {
        const { left, right, top, bottom } = shape.getBoundingClientRect();
        return left < edge.left - 2 || right > edge.right + 2 || top < edge.top - 2 || bottom > edge.bottom + 2;
      });
    }).map(shape => shape.textContent || shape.parentElement.getAttribute('class') || shape.getAttribute('class')),
    wide: Math.max(box.scrollWidth - box.clientWidth, document.documentElement.scrollWidth - innerWidth),
  };
}

// Runs in the page: all that can be read or is read out, a line each.
async function written(box) {
  await new Promise(resolve => requestAnimationFrame(() => requestAnimationFrame(resolve)));
  const parts = {
    title: '.title', control: '.controls label, .controls button', drawing: '.view > svg text', legend: '.legend li', number: '.numbers div',
    sentence: '.says', point: '[role="slider"]',
  };
  const words = part => (part.matches('.numbers div') ? [...part.children].map(child => child.textContent).join(': ') : part.textContent);
  const said = part => `${part.getAttribute('aria-label')}: ${part.getAttribute('aria-valuetext')}`;
  return Object.entries(parts).flatMap(([kind, selector]) => [...box.querySelectorAll(selector)]
    .map(part => `${kind}: ${kind === 'point' ? said(part) : words(part).replace(/\s+/g, ' ').trim()}`)).join('\n');
}

// Runs in the page: puts every slider at one of its ends, and unticks or ticks every box.
function toEnd(box, end) {
  for (const input of box.querySelectorAll('.controls input')) {
    if (input.type === 'checkbox') input.checked = end === 'max';
    else input.value = input[end];
    input.dispatchEvent(new Event('input', { bubbles: true }));
  }
}

// Runs in the page: gives each control a random value.
function shake(box, draws) {
  for (const input of box.querySelectorAll('.controls input')) {
    const draw = draws.pop();
    if (input.type === 'checkbox') input.checked = draw < 0.5;
    else input.value = Number(input.min) + draw * (Number(input.max) - Number(input.min));
    input.dispatchEvent(new Event('input', { bubbles: true }));
  }
}

async function drag(page, x, y, dx, dy) {
  await page.mouse.move(x, y);
  await page.mouse.down();
  await page.mouse.move(x + dx, y + dy, { steps: 3 });
  await page.mouse.up();
}

for (const { name, page: address } of figures.filter(({ page }) => visited.includes(page)))
  test.describe(`the figure ${name}`, () => {
    test('follows mouse and keyboard, and its numbers are the library’s', async ({ page }, info) => {
      await page.goto(address);
      const box = page.locator(boxOf(name)), states = [];
      const record = async () => {
        const seen = await page.evaluate(look, name);
        const where = `at ${JSON.stringify(seen.state)}`;
        states.push({ name, state: seen.state, result: seen.result });
        expect.soft(seen.shown, `the numbers that are shown ${where}`).toEqual(seen.numbers);
        expect.soft(seen.bad, `what is no number ${where}`).toBeNull();
        expect.soft(seen.outside, `outside the drawing ${where}`).toEqual([]);
        expect.soft(seen.wide, `too wide, by px, ${where}`).toBeLessThanOrEqual(0);
        return seen;
      };
      const first = await record();
      let before = first.drawing;
      const step = async (what, action) => {
        await action();
        const { drawing } = await record();
        expect.soft(drawing === before, `${what} changes nothing`).toBe(false);
        before = drawing;
      };

      for (const control of await box.locator('.controls input, .controls button[name]').all()) {
        const label = await control.getAttribute('name'), type = await control.getAttribute('type');
        const atEnd = await control.evaluate(input => input.value === input.max);
        const key = { range: atEnd ? 'ArrowLeft' : 'ArrowRight', checkbox: 'Space', button: 'Enter' }[type];
        await step(`${label} by keyboard`, () => control.press(key));
        if (type === 'range') for (const end of ['Home', 'End']) await step(`${label} by ${end}`, () => page.keyboard.press(end));
        else await step(`${label} by mouse`, () => control.click());
      }
      const view = box.locator('svg.draggable');
      if (await view.count())
        await step('dragging the view', async () => {
          const { x, y } = await view.boundingBox();
          await drag(page, x + 100, y + 100, 40, 20);
        });
      if (await view.count()) await step('the view by keyboard', () => view.press('ArrowLeft'));
      for (const handle of await box.locator('.handle').all()) {
        await step('a handle by keyboard', () => handle.press('ArrowUp'));
        await expect.soft(handle, 'a handle by keyboard').toBeFocused();
        if (await handle.evaluate(knob => knob.matches('.plane'))) await step('a handle sideways', () => handle.press('ArrowLeft'));
        await step('a handle by mouse', async () => {
          const { x, y, width, height } = await handle.boundingBox();
          await drag(page, x + width / 2, y + height / 2, 0, -40);
        });
      }
      const said = box.getByRole('status').filter({ hasText: await box.locator('.says').textContent() });
      await expect.soft(said, 'the sentence is read out').toBeAttached();

      await expect(page, 'the address').toHaveURL(/#move-/);
      const other = await page.context().newPage();
      await other.setViewportSize(WIDE);
      await other.goto(page.url());
      const again = await other.evaluate(look, name);
      expect.soft(again.state, 'what the address leads to').toEqual(states.at(-1).state);
      expect.soft(again.drawing === before, 'the address leads to the same drawing').toBe(true);
      await expect.soft(other.locator(boxOf(name)), 'where the address leads').toBeInViewport();
      await other.close();

      await box.getByRole('button', { name: 'Reset' }).click();
      await expect.soft(page, 'the address after Reset').not.toHaveURL(/#/);
      const { drawing, controls } = await record();
      expect.soft(drawing === first.drawing, 'Reset leads back').toBe(true);
      expect.soft(controls, 'the controls after Reset').toEqual(first.controls);
      before = drawing;

      await step('a narrow window', () => page.setViewportSize(NARROW));
      for (const drawing of await box.locator('.view').all()) {
        await drawing.evaluate(view => view.scrollIntoView({ block: 'end', behavior: 'instant' }));
        await expect.soft(box.locator('.controls'), 'the controls beside a drawing, on a phone').toBeInViewport({ ratio: 0.99 });
      }
      const random = generator(1);
      for (let i = 0; i < RANDOM_STATES; i += 1) {
        await box.evaluate(shake, Array.from({ length: 40 }, random));
        await record();
      }

      await page.emulateMedia({ media: 'print' });
      await expect.soft(box, 'in print').toBeHidden();
      await expect.soft(box.locator('xpath=preceding-sibling::figure[1]'), 'in print').toBeVisible();

      const file = info.outputPath('states.json');
      fs.writeFileSync(file, JSON.stringify(states));
      const { status, stdout, stderr } = spawnSync(process.env.PY, ['-m', 'explore.reference', name, file], { encoding: 'utf8' });
      expect.soft(status, stdout + stderr).toBe(0);
    });

    test('says what it said', async ({ page }) => {
      await page.goto(address);
      const box = page.locator(boxOf(name)), said = [];
      for (const [state, set] of [['at first', () => {}], ...['min', 'max'].map(end => [`all at ${end}`, () => box.evaluate(toEnd, end)])]) {
        await set();
        said.push(`# ${state}`, await box.evaluate(written));
      }
      expect(`${said.join('\n')}\n`).toMatchSnapshot(`${name}.txt`);
    });

    test.describe('without script', () => {
      test.use({ javaScriptEnabled: false });
      test('has no empty box', async ({ page }) => {
        await page.goto(address);
        await expect(page.locator(boxOf(name))).toBeHidden();
      });
    });
  });

test('two figures share an address, and one that means nothing is passed over', async ({ page }) => {
  const { name, page: address } = figures.find(({ name }) => name === 'span');
  const id = await (await page.goto(address), page.locator(boxOf(name)).getAttribute('id'));
  await page.goto('about:blank');
  await page.goto(`${address}#move-fig-of-another:n=3/${id}:n=99:Delta=x:causal=1:seed=-4:toString=1`);
  const state = () => page.evaluate(name => ({ ...Explore.shown[name] }), name);
  expect(await state()).toMatchObject({ n: 128, Delta: 3, causal: true, seed: 1 });
  const box = page.locator(boxOf(name));
  await box.getByRole('button', { name: 'Draw again' }).click();
  await expect(page).toHaveURL(/#move-fig-of-another:n=3\/move-[^/]+:n=7:causal=1:seed=2$/);
  await box.getByRole('button', { name: 'Reset' }).click();
  await expect(page).toHaveURL(/#move-fig-of-another:n=3$/);
});
