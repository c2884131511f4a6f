// Every formula of the built book is typeset without an error or an undefined macro; no browser is needed.
import { expect, pages, source, test as base } from './book.mjs';
import { load } from './shared.mjs';

const test = base.extend({
  mathjax: [async ({}, use) => use(await load('mathjax').init({
    loader: { load: ['input/tex-full', 'adaptors/liteDOM'], versionWarnings: false },
    // Neither noerrors nor noundefined: what a reader would see in red is an error here.
    tex: { packages: ['base', 'ams', 'newcommand', 'boldsymbol', 'cancel', 'color', 'mathtools'], formatError: (_, error) => { throw error; } },
  })), { scope: 'worker' }],
});

const plain = text => text.replace(/&lt;/g, '<').replace(/&gt;/g, '>').replace(/&quot;/g, '"').replace(/&#39;|&#x27;/g, "'").replace(/&amp;/g, '&');

// The formulas of a page, as TeX, and whether each stands on lines of its own.
const formulas = text => [...text.matchAll(/<(span|div) class="[^"]*\bmath\b[^"]*"[^>]*>(.*?)<\/\1>/gs)].flatMap(([, tag, inner]) => {
  const formula = inner.replace(/<span class="eqno">.*?<\/span>/s, '').match(/\\\((.*)\\\)|\\\[(.*)\\\]/s);
  return formula ? [{ tex: plain(formula[1] ?? formula[2]), display: tag === 'div' }] : [];
});

for (const name of pages)
  test(`the formulas of ${name}`, ({ mathjax }) => {
    const wrong = formulas(source(name)).flatMap(({ tex, display }) => {
      try {
        mathjax.tex2mml(tex, { display });
        return [];
      } catch (error) {
        return [`${error.message}: ${tex.trim().slice(0, 90)}`];
      }
    });
    expect(wrong).toEqual([]);
  });
