// Formulas by MathJax, without a browser:  node formulas.cjs <folder of MathJax>
// Each line of the input is {"tex": …, "display": …}; for each there is a line of output, {"svg": …, "mathml": …, "glyphs": {id: path}} or
// {"error": …}. The shapes of the letters stand apart from the picture that uses them, so that a page has each of them once.
const path = require('node:path');
const readline = require('node:readline');

const folder = path.resolve(process.argv[2]);
const PACKAGES = ['base', 'ams', 'newcommand', 'boldsymbol', 'cancel', 'color', 'mathtools'];   // neither noerrors nor noundefined
const DATA = / data-[\w-]+="[^"]*"/g;

function short(svg) {
  const glyphs = {};
  const drawn = svg
    .replace(/<defs>(.*?)<\/defs>/s, (_, defs) => {
      for (const [, id, shape] of defs.matchAll(/<path id="MJX-\d+-TEX-([\w-]+)" d="([^"]*)"/g)) glyphs[`g-${id}`] = shape;
      return '';
    })
    .replace(/xlink:href="#MJX-\d+-TEX-/g, 'href="#g-')
    .replace(/ (xmlns|xmlns:xlink|role|focusable|stroke|stroke-width)="[^"]*"(?=[^<]*<g)/g, '')
    .replace(DATA, '')
    .replace(/<g>(<use [^>]*><\/use>)<\/g>/g, '$1')
    .replace(/><\/(use|path|rect)>/g, '/>')
    .replace('<svg ', '<svg aria-hidden="true" ');
  return { svg: drawn, glyphs };
}

async function main() {
  process.chdir(folder);
  const MathJax = await require(path.join(folder, 'node-main.js')).init({
    loader: { load: ['input/tex-full', 'output/svg'] },
    tex: { packages: PACKAGES, formatError: (_, error) => { throw error; } },
    svg: { fontCache: 'local' },
  });
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const { tex, display } = JSON.parse(line);
    let answer;
    try {
      const { svg, glyphs } = short(MathJax.startup.adaptor.innerHTML(MathJax.tex2svg(tex, { display })));
      const mathml = MathJax.tex2mml(tex, { display }).replace(/\n\s*/g, '').replace(/<!--.*?-->/g, '').replace(DATA, '');
      answer = { svg, mathml, glyphs };
    } catch (error) {
      answer = { error: error.message };
    }
    process.stdout.write(JSON.stringify(answer) + '\n');
  }
}

main();
