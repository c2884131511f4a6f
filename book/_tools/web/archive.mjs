// Unpack the offline archive into a temporary folder and read it there, from file://: nothing fails, formulas are typeset, links
// and search work, and the PDF is in it.
//   node archive.mjs <folder of packages> <html folder>      (environment: CHROME; PY, a Python)
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { execFileSync } from 'node:child_process';
import { pathToFileURL } from 'node:url';
import { openBook, tally } from './modules.mjs';

const [packages, html] = process.argv.slice(2);
const NAME = 'deep-dive-into-the-transformer';
const READ = ['index.html', 'book/ledger.html', 'notebooks/spectrum/norm-bounds.html', 'notebooks/rank-collapse/paths.html'];
const { found, expect, finish } = tally();

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'archive-'));
execFileSync(process.env.PY ?? 'python3', ['-m', 'zipfile', '-e', path.join(html, `${NAME}.zip`), folder]);
const root = path.join(folder, NAME);
const here = pathToFileURL(root).href;

const { browser, close } = await openBook(packages, root);
async function open(name) {
  const page = await browser.newPage();
  page.on('request', request => expect(/^(file|data|blob):/.test(request.url()), `${name}: request to ${request.url()}`));
  page.on('requestfailed', request => found.push(`${name}: not loaded: ${request.url().replace(here, '')}`));
  page.on('pageerror', error => found.push(`${name}: script error: ${error.message}`));
  await page.goto(`${here}/${name}`);
  await page.waitForLoadState('load');
  return page;
}

for (const name of READ) {
  const page = await open(name);
  await page.waitForFunction(() => window.MathJax?.startup?.promise);
  const { formulas, typeset, links } = await page.evaluate(async () => {
    await MathJax.startup.promise;
    return {
      formulas: document.querySelectorAll('.math').length, typeset: document.querySelectorAll('.math mjx-container').length,
      links: [...document.links].map(link => link.href).filter(address => address.startsWith('file:')),
    };
  });
  expect(formulas > 0 && typeset === formulas, `${name}: ${formulas - typeset} of ${formulas} formulas are left as text`);
  const dead = links.map(address => new URL(address)).filter(({ pathname }) => !fs.existsSync(decodeURIComponent(pathname)));
  expect(links.length > 20 && !dead.length, `${name}: leads to ${dead[0]}, which is not in the archive`);
  expect(links.every(address => address.startsWith(here)), `${name}: leads out of the archive`);
  await page.close();
}

// The first page leads to the PDF, which is there, and not to the archive, which is not.
const landing = await open('book/index.html');
const files = await landing.locator('.takeaway a').evaluateAll(links => links.map(link => link.getAttribute('href')));
expect(String(files) === `../${NAME}.pdf` && fs.existsSync(path.join(root, `${NAME}.pdf`)), `the first page links ${files}`);
await landing.close();

const search = await open('search.html?q=residual');
await search.waitForSelector('#search-results li a', { timeout: 10000 }).catch(() => {});
expect(await search.locator('#search-results li a').count() > 2, 'the search finds nothing');

await close();
fs.rmSync(folder, { recursive: true, force: true });
finish('the archive, unpacked');
