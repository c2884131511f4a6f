// Print the whole book, which onepage.py has put on one page, as a PDF with an outline and tags, and what stands before its
// first page, the contents, once more: now it is known on which pages the chapters begin.
//   node print.mjs <folder of the page and the HTML book> <page in it> <PDF> <PDF of the contents>      (environment: PACKAGES, CHROME)
import fs from 'node:fs';
import { launchOptions, load, serve, watch } from '../_tools/web/shared.mjs';

const [folder, name, file, front] = process.argv.slice(2);
const COLUMN = 642;    // A4 less the margins of print.css, in pixels of 1/96 inch
const SMALLEST = 0.6;  // of the type size: what would have to shrink more to fit is broken into lines

// In the browser: typeset the formulas, make the wide ones fit, and describe each.
async function prepare(smallest) {
  await MathJax.startup.promise;
  await document.fonts.ready;
  const formulas = [...MathJax.startup.document.math].map(item => ({ formula: item.typesetRoot, tex: item.math.trim() }));

  // A formula wider than its column gets smaller type. All are measured before any is changed: each change would mean a new layout.
  for (const found of formulas) {
    found.scale = found.formula.closest('p, div, li, dd, td, th, figcaption').clientWidth / found.formula.scrollWidth;
  }
  for (const { formula, tex, scale } of formulas) {
    if (scale < smallest) formula.classList.add('formula-broken');
    else if (scale < 1) formula.style.fontSize = `${parseFloat(formula.style.fontSize) * scale * 0.99}%`;

    // Chromium tags what it draws for an element, but it draws a formula glyph by glyph. So an empty picture stands before each
    // and carries the TeX as its alternative text.
    const picture = new Image(1, 1);
    picture.src = 'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAAC0lEQVR42mNgAAIAAAUAAen63NgAAAAASUVORK5CYII=';
    picture.alt = tex;
    picture.className = 'formula-text';
    formula.before(picture);
    formula.setAttribute('aria-hidden', 'true');
  }
  await Promise.all([...document.images].map(image => image.decode()));
}

// In the browser: what stands out of the column, and so could be cut off.
function tooWide(column) {
  return [...document.querySelectorAll('body *')].filter(element => {
    const box = element.getBoundingClientRect();
    return box.width && element.checkVisibility() && (box.right > column + 1 || box.left < -1) && ![...element.children].some(child => child.getBoundingClientRect().right > column + 1);
  }).map(element => `wider than the page: ${element.closest('[id]')?.id}: ${element.outerHTML.slice(0, 120)}`);
}

// The page of each destination, by its name; Chromium writes a PDF's objects in plain text.
function destinations(pdf) {
  const text = pdf.toString('latin1');
  const pages = [...text.matchAll(/^(\d+) 0 obj\n<<\/Type \/Page\n/gm)].map(match => match[1]);
  const names = text.match(/\/Dests (\d+) 0 R/)?.[1];
  const list = text.match(new RegExp(`^${names} 0 obj\\n<<(.*?)>>\\nendobj`, 'ms'))?.[1] ?? '';
  const plain = name => decodeURIComponent(name.replaceAll('%', '%25').replaceAll('#', '%'));
  return Object.fromEntries([...list.matchAll(/\/(\S+) \[(\d+) 0 R/g)].map(([, name, page]) => [plain(name), pages.indexOf(page) + 1]));
}

const { base, close } = await serve(folder);
const browser = await load('@playwright/test').chromium.launch(launchOptions);
const context = await browser.newContext();
const complaints = watch(context, base);
const page = await context.newPage();

await page.setViewportSize({ width: COLUMN, height: 900 });
await page.emulateMedia({ media: 'print', colorScheme: 'light' });
await page.goto(base + name, { timeout: 0 });   // a machine may be busy
await page.evaluate(prepare, SMALLEST);
for (const text of await page.evaluate(tooWide, COLUMN)) complaints.add(text);

// The contents want to know on which pages the chapters begin, which the PDF tells. Until then numbers of the usual length stand there.
const paper = { format: 'A4', preferCSSPageSize: true, printBackground: true, tagged: true, timeout: 0 };
const number = pages => page.evaluate(pages => {
  for (const number of document.querySelectorAll('[data-of]')) number.textContent = pages ? pages[number.dataset.of] ?? '' : '000';
}, pages);
await number();
const pdf = await page.pdf({ ...paper, outline: true });
await number(destinations(pdf));
await page.evaluate(() => { for (const article of document.querySelectorAll('article')) article.remove(); });
const contents = await page.pdf(paper);
await browser.close();
close();

// When it was printed is no part of the book.
for (const [name, content] of [[file, pdf], [front, contents]])
  fs.writeFileSync(name, Buffer.from(content.toString('latin1').replace(/(Date \(D:)\d{14}/g, '$120000101000000'), 'latin1'));
for (const text of complaints) console.log(text);
process.exit(complaints.size ? 1 : 0);
