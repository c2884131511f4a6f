// The words of the figures that move. Between dollars stands a formula, as in 'width $d_h$': its letters are italic and its scripts
// small, as in the book's formulas; words of several letters, such as exp, stay upright.
Object.assign(Explore, (() => {
  const escape = text => String(text).replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/"/g, '&quot;');
  const PIECE = /([_^])(?:\{([^}]*)\}|(.))|([A-Za-z]{2,})|([A-Za-zα-ω]\p{M}*)|([^A-Za-zα-ω_^]+)/gu;

  // Pieces of one look: { text, italic, level }, where level is 1 above the line and −1 below it.
  function formula(text, level = 0) {
    return [...text.matchAll(PIECE)].flatMap(([, sign, group, single, word, letter, other]) => (sign
      ? formula(group ?? single, sign === '^' ? 1 : -1)
      : [{ text: word ?? letter ?? other, italic: letter !== undefined, level }]));
  }
  const pieces = text => String(text).split('$').flatMap((part, i) => (i % 2 ? formula(part) : part ? [{ text: part, italic: false, level: 0 }] : []));

  const plain = text => pieces(text).map(piece => piece.text).join('');

  const html = text => pieces(text).map(({ text, italic, level }) => {
    const set = italic ? `<i>${escape(text)}</i>` : escape(text);
    return level ? (level > 0 ? `<sup>${set}</sup>` : `<sub>${set}</sub>`) : set;
  }).join('');

  function svg(text) {
    let height = 0;
    return pieces(text).map(({ text, italic, level }) => {
      const looks = [italic && 'class="italic"', level && 'font-size="75%"', level !== height && `dy="${4 * (height - level)}"`].filter(Boolean);
      height = level;
      return looks.length ? `<tspan ${looks.join(' ')}>${escape(text)}</tspan>` : escape(text);
    }).join('');
  }

  return { escape, plain, html, svg };
})());
