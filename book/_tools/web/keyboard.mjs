// The Tab key alone reaches everything on a page that can be used, what has the focus looks so, and nothing is there for a mouse only.
import { expect } from './book.mjs';

// Runs in the page: numbers everything that can have the focus, notes from then on what gets it and what does not look so, and
// lists what looks clickable and cannot have it.
function prepare() {
  const FOCUSABLE = 'a[href], button, input, select, textarea, summary, [tabindex]';
  const SIGNS = ['outlineStyle', 'outlineColor', 'boxShadow', 'backgroundColor', 'color', 'stroke', 'textDecoration', 'borderColor'];
  const words = element => `${element.localName}.${[...element.classList].join('.')} “${(element.getAttribute('aria-label') ?? element.textContent).trim().slice(0, 40)}”`;
  const visible = element => element.checkVisibility({ visibilityProperty: true }) && !element.closest('[inert]');
  const usable = element => element.closest(FOCUSABLE) || element.querySelector(FOCUSABLE) || element.closest('label')?.control;
  const looks = element => { const style = getComputedStyle(element); return SIGNS.map(sign => style[sign]).join(); };
  const targets = [...document.querySelectorAll(FOCUSABLE)].filter(element => element.tabIndex >= 0 && !element.disabled && visible(element));
  const seen = new Set(), dull = new Set();
  let focused;
  document.addEventListener('focusin', ({ target }) => { seen.add(target); focused = looks(target); });
  document.addEventListener('focusout', ({ target }) => { if (looks(target) === focused) dull.add(target); });
  window.keyboard = {
    reached: () => seen.size,
    result: () => ({ dull: [...dull].map(words), missed: targets.filter(element => !seen.has(element) && element.isConnected && element.checkVisibility()).map(words) }),
  };
  return [...document.querySelectorAll('main *, header *, .bd-sidebar *')]
    .filter(element => getComputedStyle(element).cursor === 'pointer' && visible(element) && !usable(element)).map(words);
}

export async function keyboard(page) {
  expect.soft(await page.evaluate(prepare), 'only a mouse can use').toEqual([]);
  for (let before = -1, reached = 0; reached > before;) {   // until twenty presses lead to nothing new
    before = reached;
    await Promise.all(Array.from({ length: 20 }, () => page.keyboard.press('Tab')));
    reached = await page.evaluate(() => window.keyboard.reached());
  }
  const { dull, missed } = await page.evaluate(() => { document.activeElement.blur(); return window.keyboard.result(); });
  expect.soft(dull, 'one does not see that the focus is on').toEqual([]);
  expect.soft(missed, 'Tab does not reach').toEqual([]);
}
