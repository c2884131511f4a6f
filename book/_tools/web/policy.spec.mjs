// What the policy of each page keeps out: scripts that are not of the page, and other hosts.
import { chapters, expect, pages, source, test } from './book.mjs';

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
