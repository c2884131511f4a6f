// What the checks share: the packages, which lie in a cache folder rather than beside these scripts, the list of pages, the book in
// a browser, and what axe-core says of a page.
import fs from 'node:fs';
import http from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { createRequire } from 'node:module';

export const requireFrom = folder => createRequire(path.resolve(folder) + '/');

// The pages of the built book, relative to its folder, without Sphinx's own folders (_static, _sources …).
export function pages(html, folder = html) {
  return fs.readdirSync(folder, { withFileTypes: true }).flatMap(entry => {
    const file = path.join(folder, entry.name);
    if (entry.isDirectory()) return entry.name.startsWith('_') ? [] : pages(html, file);
    return entry.name.endsWith('.html') ? [path.relative(html, file)] : [];
  }).sort();
}

const TYPES = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml', '.json': 'application/json' };

// Serve the book on this machine and start a browser: CHROME, driven by the package playwright-core.
export async function openBook(packages, html) {
  const server = http.createServer((request, response) => {
    const file = path.join(html, decodeURIComponent(new URL(request.url, 'http://book').pathname));
    if (!fs.existsSync(file) || !fs.statSync(file).isFile()) return response.writeHead(404).end();
    response.writeHead(200, { 'content-type': TYPES[path.extname(file)] ?? 'application/octet-stream' });
    response.end(fs.readFileSync(file));
  });
  await new Promise(resolve => server.listen(0, '127.0.0.1', resolve));
  const profile = fs.mkdtempSync(path.join(os.tmpdir(), 'book-'));
  const browser = await requireFrom(packages)('playwright-core').chromium.launchPersistentContext(profile, {
    executablePath: process.env.CHROME, headless: true,
    args: [...(process.getuid?.() === 0 ? ['--no-sandbox'] : []), '--disable-gpu', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
  });
  const close = async () => {
    await browser.close();
    server.close();
    fs.rmSync(profile, { recursive: true, force: true });
  };
  return { base: `http://127.0.0.1:${server.address().port}/`, browser, close };
}

// What a check expects and what it found wrong; `finish` says so and ends the script.
export function tally() {
  const found = [];
  let checks = 0;
  return {
    found,
    expect: (holds, complaint) => { checks += 1; if (!holds) found.push(complaint); },
    finish: what => {
      for (const text of found) console.log(text);
      console.log(`${what}: ${checks} checks, ${found.length} problems`);
      process.exit(found.length ? 1 : 0);
    },
  };
}

const LEVELS = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'];

// What violates levels A and AA, on a page or in the place that a selector names.
export async function violations(page, packages, place) {
  await page.evaluate(fs.readFileSync(requireFrom(packages).resolve('axe-core/axe.min.js'), 'utf8'));
  return page.evaluate(async ([place, runOnly]) => (await window.axe.run(place ?? document, { runOnly })).violations, [place, LEVELS]);
}
