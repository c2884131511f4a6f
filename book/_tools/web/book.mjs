// The built book (HTML) under test: its pages, a browser context whose pages may not fail, and what axe-core says of a page.
import fs from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { load, serve, watch } from './shared.mjs';

const { test: plain, expect } = load('@playwright/test');
export { expect };

export const html = path.resolve(process.env.HTML);
export const FOLDER = pathToFileURL(html).href + '/';   // as baseURL: the book is read without a server
export const WIDE = { width: 1280, height: 900 }, NARROW = { width: 320, height: 800 };
export const COLUMN = 642;   // A4 less the margins of print.css, in pixels of 1/96 inch

export const source = name => fs.readFileSync(path.join(html, name), 'utf8');
// The pages of the built book, relative to its folder, without Sphinx's own folders (_static, _sources …), the stubs at old addresses
// and the page for dead links, which works only at the book's public address.
export const pages = fs.readdirSync(html, { recursive: true })
  .filter(name => name.endsWith('.html') && name !== '404.html' && !/(^|\/)_/.test(name) && !/http-equiv="?refresh/i.test(source(name))).sort();
// What is looked at page by page: all pages, or those that PAGES names, with those that no file of the book is the source of.
const asked = process.env.PAGES?.split(' ');
export const visited = process.env.PAGES ? pages.filter(name => asked.includes(name) || !/^(book|notebooks)\//.test(name)) : pages;
export const chapters = pages.filter(name => name.startsWith('notebooks/'));

// The page of a chapter, in whichever part it stands.
export function chapter(name) {
  const page = chapters.find(page => path.basename(page, '.html') === name);
  if (!page) throw new Error(`chapter: there is no chapter ${name} in ${html}`);
  return page;
}

// Pages are addressed from the book's folder, as in page.goto('book/ledger.html'). Whatever goes wrong on one fails the test.
export const test = plain.extend({
  server: [async ({}, use) => {
    const { base, close } = await serve(html);
    await use(base);
    close();
  }, { scope: 'worker' }],
  baseURL: async ({ server }, use) => use(server),
  context: async ({ context, baseURL }, use) => {
    const complaints = watch(context, baseURL);
    context.on('console', message => { if (message.type() === 'error') complaints.add(`console error: ${message.text()}`); });
    await use(context);
    expect([...complaints], 'requests and scripts').toEqual([]);
  },
});

// A page with all that it loads; on a busy machine nothing may be on its way for a while before the page stands.
export async function open(page, name) {
  await page.goto(name);
  await page.waitForLoadState('networkidle');
}

const LEVELS = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'];

const AXE = fs.readFileSync(load.resolve('axe-core/axe.min.js'), 'utf8');

// Nothing waits any more until it comes near the screen, before what is returned is called.
export async function layOut(page) {
  const style = await page.addStyleTag({ content: 'section :not([hidden]) { content-visibility: visible !important; }' });
  await page.evaluate(() => new Promise(resolve => requestAnimationFrame(() => setTimeout(resolve))));   // it is laid out, and measured
  return () => style.evaluate(element => element.remove());
}

// What violates levels A and AA, on a page that is laid out or in the place that a selector names. What formulas are drawn of and code
// that is folded away are put aside meanwhile: four fifths of a chapter's elements, and no rule has a word about them.
export async function violations(page, place) {
  if (!await page.evaluate(() => 'axe' in window)) await page.evaluate(AXE);
  const found = await page.evaluate(async ([place, runOnly]) => {
    const aside = [...document.querySelectorAll('.math > *, details.code:not([open]) pre')].map(part => [part, [...part.childNodes]]);
    for (const [part] of aside) part.replaceChildren();
    const preload = location.protocol !== 'file:';   // from a folder axe may not fetch the style sheets, which few of its rules read
    const { violations } = await window.axe.run(place ?? document, { runOnly, preload, resultTypes: ['violations'] });
    for (const [part, children] of aside) part.replaceChildren(...children);
    return violations;
  }, [place, LEVELS]);
  return found.flatMap(({ id, help, nodes }) => nodes.map(node => `${id}: ${help}: ${node.target.join(' ')}: ${node.html.slice(0, 120)}`));
}
