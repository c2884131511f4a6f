// What a first visit costs: bytes as a server sends them and on the disk, and shifts of what is already on the screen. And what the
// policy of each page keeps out.
import fs from 'node:fs';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import { chapters, expect, html, NARROW, pages, source, test, visitedChapters } from './book.mjs';

const SENT = 500_000, STORED = 2_000_000, SHIFT = 0.05;

test.use({ viewport: NARROW });

for (const name of visitedChapters)
  test(`the first visit of ${name}`, async ({ page }) => {
    const asked = new Set();
    page.on('response', response => asked.add(decodeURIComponent(new URL(response.url()).pathname)));
    await page.addInitScript(() => {
      window.shift = 0;
      new PerformanceObserver(list => {
        for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.shift += entry.value;
      }).observe({ type: 'layout-shift', buffered: true });
    });
    await page.goto(name, { waitUntil: 'networkidle' });
    const files = [...asked].map(address => path.join(html, address));
    const sent = files.map(file => gzipSync(fs.readFileSync(file)).length).reduce((sum, size) => sum + size, 0);
    expect.soft(sent, `bytes of ${files.length} files, compressed`).toBeLessThanOrEqual(SENT);
    expect.soft(Buffer.byteLength(source(name)), 'bytes of the page on the disk').toBeLessThanOrEqual(STORED);
    expect.soft([...asked].filter(address => /fontawesome\.js|searchindex|mathjax|\.map$/.test(address)), 'what no first visit needs').toEqual([]);
    expect.soft(await page.evaluate(() => window.shift), 'layout shift').toBeLessThan(SHIFT);
  });

test('every page has a policy without unsafe scripts', () => {
  for (const name of pages) {
    const policy = source(name).match(/http-equiv="Content-Security-Policy" content="([^"]*)"/)?.[1] ?? '';
    expect.soft(policy, name).toContain("default-src 'none'");
    expect.soft(policy.match(/script-src ([^;]*)/)?.[1] ?? '', name).toMatch(/^'self'( 'sha256-[^']+')*$/);
    expect.soft(source(name).match(/<[^>]* on[a-z]+="/)?.[0], `${name}: handlers in attributes`).toBeUndefined();
  }
});

test('the policy keeps out scripts that are not of the page, and other hosts', async ({ browser, baseURL }) => {
  const page = await browser.newPage();   // not watched: it is meant to go wrong
  await page.goto(baseURL + chapters[0]);
  const kept = await page.evaluate(() => new Promise(resolve => {
    const seen = [];
    document.addEventListener('securitypolicyviolation', event => { seen.push(event.effectiveDirective); if (seen.length === 2) resolve(seen.sort()); });
    const script = document.createElement('script');
    script.textContent = 'window.ran = true';
    document.body.append(script);
    document.body.append(Object.assign(new Image(), { src: 'https://example.org/x.png' }));
  }));
  expect(kept).toEqual(['img-src', 'script-src-elem']);
  expect(await page.evaluate(() => window.ran)).toBeUndefined();
  await page.close();
});
