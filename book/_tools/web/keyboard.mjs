// Go through every page with the Tab key alone, and complain about what it does not reach, what has no sign of the focus, and what
// only a mouse can use.
//   node keyboard.mjs <folder of packages> <html folder>      (environment: CHROME)
import { openBook, pages } from './modules.mjs';

const [packages, html] = process.argv.slice(2);
const { base, browser, close } = await openBook(packages, html);
const found = new Map();   // complaint -> the pages it was made about
const complain = (text, page) => found.set(text, [...(found.get(text) ?? []), page]);
let reached = 0;

// Runs in the page: numbers everything that can have the focus, and lists what looks clickable and cannot have it.
function prepare() {
  const FOCUSABLE = 'a[href], button, input, select, textarea, summary, [tabindex]';
  const words = element => `${element.localName}.${[...element.classList].join('.')} “${(element.getAttribute('aria-label') ?? element.textContent).trim().slice(0, 40)}”`;
  const visible = element => element.checkVisibility({ visibilityProperty: true }) && !element.closest('[inert]');
  window.targets = [...document.querySelectorAll(FOCUSABLE)].filter(element => element.tabIndex >= 0 && !element.disabled && visible(element));
  window.seen = new Set();
  const usable = element => element.closest(FOCUSABLE) || element.querySelector(FOCUSABLE) || element.closest('label')?.control;
  window.named = words;
  return [...document.querySelectorAll('main *, header *, .bd-sidebar *')]
    .filter(element => getComputedStyle(element).cursor === 'pointer' && visible(element) && !usable(element)).map(words);
}

// Runs in the page: notes what has the focus now; says whether the round is complete, and what is wrong with it.
function note() {
  const element = document.activeElement;
  if (element === document.body || window.seen.has(element)) return { end: true };
  window.seen.add(element);
  const SIGNS = ['outlineStyle', 'outlineColor', 'boxShadow', 'backgroundColor', 'color', 'stroke', 'textDecoration', 'borderColor'];
  const looks = () => SIGNS.map(sign => getComputedStyle(element)[sign]).join();
  const focused = looks();
  element.blur();
  const plain = looks();
  element.focus();
  return focused === plain ? { dull: window.named(element) } : {};
}

async function go(name) {
  const page = await browser.newPage();
  await page.setViewportSize({ width: 1280, height: 900 });
  await page.goto(base + name);
  await page.evaluate(() => window.MathJax?.startup?.promise);
  await page.waitForTimeout(200);
  for (const mouseOnly of await page.evaluate(prepare)) complain(`only a mouse can use ${mouseOnly}`, name);
  for (let step = 0; step < 5000; step += 1) {
    await page.keyboard.press('Tab');
    const { end, dull } = await page.evaluate(note);
    if (end) break;
    if (dull) complain(`one does not see that the focus is on ${dull}`, name);
  }
  const missed = await page.evaluate(() => window.targets.filter(element => !window.seen.has(element) && element.isConnected && element.checkVisibility()).map(window.named));
  for (const element of missed) complain(`Tab does not reach ${element}`, name);
  reached += await page.evaluate(() => window.seen.size);
  await page.close();
}

const names = pages(html).filter(name => name !== 'index.html');
await Promise.all([0, 1].map(async () => { while (names.length) await go(names.shift()); }));
await close();
for (const [text, where] of found) console.log(`${text}\n    on ${where.slice(0, 3).join(', ')}${where.length > 3 ? ` and ${where.length - 3} more` : ''}`);
console.log(`Tab reached ${reached} elements, ${found.size} problems`);
process.exit(found.size ? 1 : 0);
