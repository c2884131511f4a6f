// Open every page of the built book, wide and narrow, light and dark, and complain about requests to other hosts, failed
// requests, console errors, formulas left as text, pages wider than the screen, and axe-core violations of level A and AA.
//   node browser.mjs <folder of packages> <html folder>      (environment: CHROME; SHOTS, a folder for screenshots)
import fs from 'node:fs';
import path from 'node:path';
import { openBook, pages, violations } from './modules.mjs';

const [packages, html] = process.argv.slice(2);
const shots = process.env.SHOTS;

const THEMES = ['light', 'dark'];
const WIDTHS = [['wide', 1280], ['narrow', 375]];
const AUDITED = new Set(['light wide', 'dark narrow']);   // axe is slow: it sees both themes and both widths, once each
const WORKERS = shots ? 1 : 2;   // pages looked at side by side; screenshots taken at the same time can get mixed up

const { base, browser, close } = await openBook(packages, html);

const found = new Map();   // complaint -> the pages and views it was made about
const complain = (text, where) => found.set(text, [...(found.get(text) ?? []), where]);

// One visit: a page in one theme, loaded once and seen at every width.
async function visit(name, theme) {
  let where = `${name} (${theme})`;
  const page = await browser.newPage();
  page.on('request', request => {
    if (/^(https?|wss?):/.test(request.url()) && !request.url().startsWith(base)) complain(`request to another host: ${request.url()}`, where);
  });
  page.on('response', response => {
    if (response.status() >= 400) complain(`${response.status()} for ${response.url().replace(base, '/')}`, where);
  });
  page.on('pageerror', error => complain(`script error: ${error.message}`, where));
  page.on('console', message => { if (message.type() === 'error') complain(`console error: ${message.text()}`, where); });

  await page.emulateMedia({ colorScheme: theme });
  await page.setViewportSize({ width: WIDTHS[0][1], height: 900 });
  await page.goto(base + name, { waitUntil: 'load' });
  for (const [width, pixels] of WIDTHS) {
    where = `${name} (${theme}, ${width})`;
    await page.setViewportSize({ width: pixels, height: 900 });
    const shot = path.join(shots ?? '', `${name.replace(/\.html$/, '').replaceAll('/', '_')}.${theme}.${width}.png`);
    await look(page, where, shot, AUDITED.has(`${theme} ${width}`));
  }
  await page.close();
}

async function look(page, where, shot, audited) {
  const seen = await page.evaluate(async () => {
    await window.MathJax?.startup?.promise;
    await document.fonts.ready;
    await new Promise(resolve => setTimeout(resolve, 200));
    await Promise.allSettled(document.getAnimations().map(animation => animation.finished));   // buttons fade into the theme's colours
    return {
      formulas: document.querySelectorAll('.math').length,
      typeset: document.querySelectorAll('.math mjx-container').length,
      overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth,
      idle: [...document.querySelectorAll('span.math[tabindex]')].filter(formula => formula.firstElementChild.offsetWidth <= formula.clientWidth).length,
    };
  });
  if (seen.typeset < seen.formulas) complain(`${seen.formulas - seen.typeset} formulas left as text`, where);
  if (seen.overflow > 0) complain('the page is wider than the screen', where);
  if (seen.idle > 0) complain(`${seen.idle} formulas can be reached with the keyboard, and do not scroll`, where);

  if (shots) {
    fs.mkdirSync(shots, { recursive: true });
    await page.screenshot({ path: shot, fullPage: true });
  }
  if (!audited) return;
  for (const { id, help, nodes } of await violations(page, packages))
    for (const node of nodes) complain(`axe: ${id}: ${help}: ${node.target.join(' ')}: ${node.html.slice(0, 120)}`, where);
}

const names = pages(html).filter(name => !/http-equiv="?refresh/i.test(fs.readFileSync(path.join(html, name), 'utf8')));
names.push('search.html?q=norm');   // with results
const visits = names.flatMap(name => THEMES.map(theme => [name, theme]));
await Promise.all(Array.from({ length: WORKERS }, async () => {
  while (visits.length) await visit(...visits.shift());
}));
await close();

for (const [text, where] of found) console.log(`${text}\n    on ${where.slice(0, 3).join(', ')}${where.length > 3 ? ` and ${where.length - 3} more` : ''}`);
console.log(`${names.length} pages in ${THEMES.length * WIDTHS.length} views, ${found.size} problems`);
process.exit(found.size ? 1 : 0);
