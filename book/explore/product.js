// Products of random attention matrices: their norms multiply, the product keeps below √n and forgets.
(() => {
  const { format, normals, queriesAndKeys, attention, matrixNorm, product } = Explore;
  const n = 16;         // tokens
  const DEEPEST = 24;   // layers

  function compute({ L, Delta, causal, seed }) {
    const normal = normals(seed);
    const tokens = Array.from({ length: L }, () => queriesAndKeys(normal, n));
    const theta = 1 / (1 + Math.exp(-Delta));
    const ofNorms = [], ofProduct = [], lower = [];
    let P;
    tokens.forEach(([Q, K], layer) => {
      const A = attention(Q, K, Delta, causal);
      P = layer ? product(A, P) : A;
      ofNorms.push(matrixNorm(A) * (ofNorms.at(-1) ?? 1));
      ofProduct.push(matrixNorm(P));
      lower.push(causal ? Math.sqrt(Math.max(1, n * (1 - (n - 1) * theta ** (layer + 1)))) : 1);
    });
    // With the mask: the most that a row gives to other tokens than the first. Without: the most by which two rows differ.
    const left = causal
      ? Math.max(...P.map(row => row.slice(1).reduce((a, b) => a + b)))
      : Math.max(...P[0].map((_, j) => Math.max(...P.map(row => row[j])) - Math.min(...P.map(row => row[j]))));
    const promised = causal ? (n - 1) * theta ** L : (1 - Math.exp(-Delta)) ** L;
    return { ofNorms, ofProduct, lower, P, left, promised };
  }

  const LEAST = 1e-12;   // what is smaller may be rounding
  const inWords = left => (left < LEAST ? `below ${format(LEAST)}` : format(left));

  function describe({ L, causal }, { ofNorms, ofProduct, left, promised }) {
    const layers = L === 1 ? 'One layer: its norm is' : `The norms of ${L} layers multiply to`;
    const start = `${layers} ${format(ofNorms.at(-1))}; the product itself has norm ${format(ofProduct.at(-1))}, and for no number of layers is it above $√n$ = ${format(Math.sqrt(n))}. `;
    return start + (causal
      ? `More and more attention ends at the first token: the most that a row leaves to the others is ${inWords(left)}, and the theorem promises at most $(n−1)θ^L$ = ${format(promised)}${promised >= 1 ? ', which is no promise yet' : ''}.`
      : `The rows become alike: the largest difference of two in a column is ${inWords(left)}, and the theorem promises at most $(1−exp(−Δ))^L$ = ${format(promised)}.`);
  }

  Explore.define('product', {
    controls: [
      { name: 'L', label: 'layers $L$', min: 1, max: DEEPEST, step: 1, value: 20 },
      { name: 'Delta', label: 'span $Δ$', min: 0, max: 16, step: 0.5, value: 12 },
      { name: 'causal', label: 'causal mask', value: false },
      { name: 'seed', label: 'Draw again', value: 1, press: seed => seed + 1 },
    ],
    compute,
    numbers: ({ causal }, { ofNorms, ofProduct, left, promised }) => [
      ['product of the norms', ofNorms.at(-1)], ['norm of the product', ofProduct.at(-1)], ['$√n$', Math.sqrt(n)],
      [causal ? 'most left to other tokens' : 'largest difference of two rows', inWords(left)], ['the theorem’s bound on it', promised]],
    describe,
    views: [
      {
        height: 320,
        draw(axes, state, { ofNorms, ofProduct, lower }) {
          const view = axes({ x: [0, DEEPEST], y: [0.8, 1.5 * Math.max(10, ofNorms.at(-1))], logY: true, xLabel: 'layers', yLabel: 'amplification' });
          const byLayer = values => [[0, 1], ...values.map((value, i) => [i + 1, value])];   // no layers: the identity
          view.level(Math.sqrt(n), 5, '$√n$');
          view.line(byLayer(ofNorms), 2, 'product of the norms');
          view.line(byLayer(ofProduct), 1, 'norm of the product');
          view.line(byLayer(lower), 4, 'lower bound');
        },
      },
      {
        height: 320,
        draw(axes, state, { P }) {
          const view = axes({ x: [0, 1], y: [0, 1], square: true, bare: true });
          view.matrix(P, Math.max(...P.flat()));
          view.caption('The product $P$');
        },
      },
    ],
  });
})();
