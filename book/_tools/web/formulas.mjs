// Typeset every formula of the built book and complain about each that has an error or an undefined macro.
//   node formulas.mjs <folder of packages> <html folder>
import fs from 'node:fs';
import path from 'node:path';
import { pages, requireFrom } from './modules.mjs';

const [packages, html] = process.argv.slice(2);
const MathJax = await requireFrom(packages)('mathjax').init({
  loader: { load: ['input/tex-full', 'adaptors/liteDOM'], versionWarnings: false },
  // Neither noerrors nor noundefined: what a reader would see in red is an error here.
  tex: { packages: ['base', 'ams', 'newcommand', 'boldsymbol', 'cancel', 'color', 'mathtools'], formatError: (_, error) => { throw error; } },
});

const plain = text => text.replace(/&lt;/g, '<').replace(/&gt;/g, '>').replace(/&quot;/g, '"').replace(/&#39;|&#x27;/g, "'").replace(/&amp;/g, '&');
let count = 0, bad = 0;
for (const page of pages(html)) {
  const text = fs.readFileSync(path.join(html, page), 'utf8');
  for (const [, tag, inner] of text.matchAll(/<(span|div) class="[^"]*\bmath\b[^"]*"[^>]*>(.*?)<\/\1>/gs)) {
    const formula = inner.replace(/<span class="eqno">.*?<\/span>/s, '').match(/\\\((.*)\\\)|\\\[(.*)\\\]/s);
    if (!formula) continue;
    count += 1;
    const tex = plain(formula[1] ?? formula[2]);
    try {
      MathJax.tex2mml(tex, { display: tag === 'div' });
    } catch (error) {
      bad += 1;
      console.log(`${page}: ${error.message}: ${tex.trim().slice(0, 90)}`);
    }
  }
}
console.log(`${count} formulas, ${bad} with errors`);
process.exit(bad ? 1 : 0);
