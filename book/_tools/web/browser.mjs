// Open every page of the built book, wide and narrow, light and dark, and complain about requests to other hosts, failed
// requests, console errors, formulas left as text, pages wider than the screen, and axe-core violations of level A and AA.
//   node browser.mjs <folder of packages> <html folder>      (environment: CHROME; SHOTS, a folder for screenshots)
import fs from 'node:fs';
import http from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { pages, requireFrom } from './modules.mjs';

const [packages, html] = process.argv.slice(2);
const require = requireFrom(packages);
const { chromium } = require('playwright-core');
const axe = fs.readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');
const shots = process.env.SHOTS;

const VIEWS = ['light', 'dark'].flatMap(theme => [[theme, 'wide', 1280], [theme, 'narrow', 375]]);
const LEVELS = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'];
const TYPES = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml', '.json': 'application/json' };

const server = http.createServer((request, response) => {
  const file = path.join(html, decodeURIComponent(new URL(request.url, 'http://book').pathname));
  if (!fs.existsSync(file) || !fs.statSync(file).isFile()) return response.writeHead(404).end();
  response.writeHead(200, { 'content-type': TYPES[path.extname(file)] ?? 'application/octet-stream' });
  response.end(fs.readFileSync(file));
});
await new Promise(resolve => server.listen(0, '127.0.0.1', resolve));
const base = `http://127.0.0.1:${server.address().port}/`;

const profile = fs.mkdtempSync(path.join(os.tmpdir(), 'book-'));
const browser = await chromium.launchPersistentContext(profile, {
  executablePath: process.env.CHROME, headless: true,
  args: [...(process.getuid?.() === 0 ? ['--no-sandbox'] : []), '--disable-gpu', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
});

const found = new Map();   // complaint -> the pages and views it was made about
const complain = (text, where) => found.set(text, [...(found.get(text) ?? []), where]);

async function look(name, [theme, width, pixels]) {
  const where = `${name} (${theme}, ${width})`;
  const page = await browser.newPage();
  page.on('request', request => {
    if (/^(https?|wss?):/.test(request.url()) && !request.url().startsWith(base)) complain(`request to another host: ${request.url()}`, where);
  });
  page.on('response', response => {
    if (response.status() >= 400) complain(`${response.status()} for ${response.url().replace(base, '/')}`, where);
  });
  page.on('pageerror', error => complain(`script error: ${error.message}`, where));
  page.on('console', message => { if (message.type() === 'error') complain(`console error: ${message.text()}`, where); });

  await page.setViewportSize({ width: pixels, height: 900 });
  await page.emulateMedia({ colorScheme: theme });
  await page.goto(base + name, { waitUntil: 'load' });
  const seen = await page.evaluate(async () => {
    await window.MathJax?.startup?.promise;
    await document.fonts.ready;
    await new Promise(resolve => setTimeout(resolve, 200));
    return {
      formulas: document.querySelectorAll('.math').length,
      typeset: document.querySelectorAll('.math mjx-container').length,
      overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    };
  });
  if (seen.typeset < seen.formulas) complain(`${seen.formulas - seen.typeset} formulas left as text`, where);
  if (seen.overflow > 0) complain('the page is wider than the screen', where);

  await page.evaluate(axe);
  const { violations } = await page.evaluate(levels => window.axe.run(document, { runOnly: levels }), LEVELS);
  for (const { id, help, nodes } of violations)
    for (const node of nodes) complain(`axe: ${id}: ${help}: ${node.target.join(' ')}: ${node.html.slice(0, 120)}`, where);

  if (shots) {
    fs.mkdirSync(shots, { recursive: true });
    await page.screenshot({ path: path.join(shots, `${name.replace(/\.html$/, '').replaceAll('/', '_')}.${theme}.${width}.png`), fullPage: true });
  }
  await page.close();
}

const names = pages(html).filter(name => !/http-equiv="?refresh/i.test(fs.readFileSync(path.join(html, name), 'utf8')));
for (const name of names) for (const view of VIEWS) await look(name, view);
await browser.close();
server.close();
fs.rmSync(profile, { recursive: true, force: true });

for (const [text, where] of found) console.log(`${text}\n    on ${where.slice(0, 3).join(', ')}${where.length > 3 ? ` and ${where.length - 3} more` : ''}`);
console.log(`${names.length} pages in ${VIEWS.length} views, ${found.size} problems`);
process.exit(found.size ? 1 : 0);
