// The offline archive, unpacked into a temporary folder and read there, from file://: nothing fails, formulas are typeset, links and
// search work, and the PDF is in it.
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { execFileSync } from 'node:child_process';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { chapter, expect, html, test as base } from './book.mjs';

const NAME = 'deep-dive-into-the-transformer';

const test = base.extend({
  unpacked: [async ({}, use) => {
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'archive-'));
    execFileSync(process.env.PY, ['-m', 'zipfile', '-e', path.join(html, `${NAME}.zip`), folder]);
    await use(pathToFileURL(path.join(folder, NAME)).href + '/');
    fs.rmSync(folder, { recursive: true, force: true });
  }, { scope: 'worker' }],
  baseURL: async ({ unpacked }, use) => use(unpacked),
});
const exists = address => fs.existsSync(fileURLToPath(address.replace(/[?#].*/, '')));

for (const name of ['index.html', 'book/ledger.html', ...['norm-bounds', 'paths'].map(chapter)])
  test(`${name} in the archive`, async ({ page, baseURL }) => {
    await page.goto(name);
    await page.waitForFunction(() => document.querySelector('.math'));   // index.html leads on
    const formulas = await page.locator('.math').count();
    expect.soft(formulas, 'formulas').toBeGreaterThan(0);
    expect.soft(await page.locator('.math > svg').count(), 'formulas that are typeset').toBe(formulas);
    const links = await page.evaluate(() => [...document.links].map(link => link.href).filter(address => address.startsWith('file:')));
    expect.soft(links.length, 'links').toBeGreaterThan(20);
    expect.soft(links.filter(address => !exists(address)), 'links to what is not there').toEqual([]);
    expect.soft(links.filter(address => !address.startsWith(baseURL)), 'links out of the archive').toEqual([]);
  });

test('the first page of the archive leads to the PDF, and not to the archive', async ({ page, baseURL }) => {
  await page.goto('book/index.html');
  expect(await page.locator('.takeaway a').evaluateAll(links => links.map(link => link.getAttribute('href')))).toEqual([`../${NAME}.pdf`]);
  expect(exists(`${baseURL}${NAME}.pdf`), 'the PDF is there').toBe(true);
});

test('the search of the archive finds a word', async ({ page }) => {
  await page.goto('search.html?q=residual');
  await expect(page.locator('#search-results li a').nth(2)).toBeVisible();
});
