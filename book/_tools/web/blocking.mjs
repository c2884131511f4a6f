// How long a first visit of chapters keeps a phone from answering; without names, of the four longest:
//     sh book/_tools/web/blocking.sh _build/html [chapter …]
// Times are of this machine at this hour, so nothing asserts them: compare
// two builds side by side, while nothing else runs. The processor is slowed down fourfold; each number is the median of the runs.
import fs from 'node:fs';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import { chapter, chapters, html } from './book.mjs';
import { launchOptions, load, serve } from './shared.mjs';

const RUNS = 5, SLOWER = 4, QUIET = 2500, LONG = 50;   // a task is long from 50 ms on, and blocks by what it takes beyond
const PHONE = { viewport: { width: 390, height: 800 }, deviceScaleFactor: 2, isMobile: true, hasTouch: true };
const median = values => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];

function observe() {
  window.tasks = [];
  window.shift = 0;
  new PerformanceObserver(list => window.tasks.push(...list.getEntries().map(task => task.duration))).observe({ type: 'longtask', buffered: true });
  new PerformanceObserver(list => {
    for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.shift += entry.value;
  }).observe({ type: 'layout-shift', buffered: true });
}

async function visit(browser, address) {
  const context = await browser.newContext(PHONE);
  const page = await context.newPage();
  const session = await context.newCDPSession(page);
  await session.send('Emulation.setCPUThrottlingRate', { rate: SLOWER });
  await page.addInitScript(observe);
  await page.goto(address);
  await page.waitForTimeout(QUIET);
  const { tasks, shift } = await page.evaluate(() => ({ tasks: window.tasks, shift: window.shift }));
  await context.close();
  return { blocked: tasks.reduce((sum, task) => sum + task - LONG, 0), longest: Math.max(0, ...tasks), shift };
}

const size = name => fs.statSync(path.join(html, name)).size;
const asked = process.argv.slice(2);
const chosen = asked.length ? asked.map(chapter) : [...chapters].sort((a, b) => size(b) - size(a)).slice(0, 4);

const { chromium } = load('playwright-core');
const browser = await chromium.launch(launchOptions);
const { base, close } = await serve(html);
const visits = Object.fromEntries(chosen.map(name => [name, []]));
for (let run = 0; run < RUNS; run++) for (const name of chosen) visits[name].push(await visit(browser, base + name));
console.log('blocked ms  longest task ms  layout shift  page KB  compressed KB');
for (const [name, seen] of Object.entries(visits)) {
  const of = what => median(seen.map(one => one[what]));
  const compressed = gzipSync(fs.readFileSync(path.join(html, name))).length;
  console.log(`${of('blocked').toFixed(0).padStart(10)}  ${of('longest').toFixed(0).padStart(15)}  ${of('shift').toFixed(3).padStart(12)}  ${(size(name) / 1000).toFixed(0).padStart(7)}  ${(compressed / 1000).toFixed(0).padStart(13)}  ${name}`);
}
await browser.close();
close();
