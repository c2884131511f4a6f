// Random queries and keys of width d_h: how far their dot products spread, with and without the division by √d_h, and what the
// softmax makes of the first query's.
(() => {
  const { softmax, normals, format, weight } = Explore;
  const QUERIES = 16, KEYS = 16, WIDEST = 1024, WIDTHS = Array.from({ length: 11 }, (_, e) => 2 ** e);

  // Normal numbers for all queries and keys: the first of a row is what its features share. Kept until the seed changes.
  let drawn = {};
  function draw(seed) {
    if (drawn.seed !== seed) {
      const normal = normals(seed);
      drawn = { seed, rows: Array.from({ length: QUERIES + KEYS }, () => Array.from({ length: 1 + WIDEST }, normal)) };
    }
    return drawn.rows;
  }

  // Features of variance 1, any two of them correlated by rho.
  const correlate = (row, rho) => row.slice(1).map(own => Math.sqrt(1 - rho) * own + Math.sqrt(rho) * row[0]);

  // q·k over the first d_h features, for every width d_h.
  function products(q, k) {
    let sum = 0, i = 0;
    return WIDTHS.map(width => {
      for (; i < width; i += 1) sum += q[i] * k[i];
      return sum;
    });
  }

  function deviation(values) {
    const mean = values.reduce((a, b) => a + b) / values.length;
    return Math.sqrt(values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (values.length - 1));
  }

  // The theorem for these features: Var(q·k) = tr(Σ_q Σ_k) = d_h + ρ² d_h (d_h − 1).
  const theorem = (width, rho, divide) => Math.sqrt((width + rho ** 2 * width * (width - 1)) / (divide ? width : 1));

  function compute({ width, divide, rho, seed }) {
    const vectors = draw(seed).map(row => correlate(row, rho));
    const queries = vectors.slice(0, QUERIES), keys = vectors.slice(QUERIES), at = Math.log2(width);
    const S = queries.map(q => keys.map(k => products(q, k).map((product, e) => (divide ? product / Math.sqrt(WIDTHS[e]) : product))));
    const logits = S[0], all = S.flat().map(row => row[at]);   // those of the first query: key, width
    const weights = softmax(logits.map(row => row[at]));
    const entropy = weights.reduce((sum, p) => sum - (p > 0 ? p * Math.log(p) : 0), 0);
    return {
      logits, weights, largest: Math.max(...weights), read: Math.exp(entropy),
      measured: deviation(all), expected: theorem(width, rho, divide),
    };
  }

  const growth = (rho, divide) => (rho === 0
    ? `${divide ? 'the same at every width' : 'which grows like $√d_h$'}`
    : `which in wide heads grows like ${divide ? '$ρ√d_h$: dividing by $√d_h$ is then too little' : '$ρd_h$'}`);

  Explore.define('width', {
    controls: [
      { name: 'width', label: 'width $d_h$', min: 0, max: 10, step: 1, value: 6, read: e => 2 ** e },
      { name: 'divide', label: 'divide by $√d_h$', value: false },
      { name: 'rho', label: 'correlation $ρ$', min: 0, max: 0.5, step: 0.1, value: 0 },
      { name: 'seed', label: 'Draw again', value: 1, press: seed => seed + 1 },
    ],
    compute,
    numbers: (state, { measured, expected, largest, read }) => [
      [`standard deviation of ${QUERIES}·${KEYS} logits`, measured], ['by the theorem', expected],
      ['largest weight', weight(largest)], ['keys read, exp of the entropy', read]],
    describe: ({ rho, divide }, { measured, expected, largest, read }) =>
      `The logits of ${QUERIES} queries and ${KEYS} keys have standard deviation ${format(measured)}; over all draws the theorem says `
      + `${format(expected)}, ${growth(rho, divide)}. The largest weight of the first query is ${weight(largest)}; `
      + `by the entropy of its weights it reads about ${format(read)} of ${KEYS} keys.`,
    views: [
      {
        draw(axes, { width, rho, divide }, { logits }) {
          const top = 1.05 * Math.max(...logits.flat().map(Math.abs), theorem(WIDEST, rho, divide)), at = Math.log2(width);
          const view = axes({
            x: [0.8, 1.25 * WIDEST], y: [-top, top], logX: true, xTicks: [1, 4, 16, 64, 256, 1024], xLabel: 'width $d_h$', yLabel: 'logit' });
          view.marks(logits.flatMap(row => row.map((logit, e) => [WIDTHS[e], logit])), 5, 'logits of the first query', 1.5);
          view.line(WIDTHS.map(d_h => [d_h, theorem(d_h, rho, divide)]), 2, '± standard deviation by the theorem');
          view.line(WIDTHS.map(d_h => [d_h, -theorem(d_h, rho, divide)]), 2);
          view.marks(logits.map(row => [width, row[at]]), 1, 'at this width', 3.5);
        },
      },
      {
        draw(axes, state, { weights }) {
          const view = axes({ x: [0.4, KEYS + 0.6], y: [0, 1], xTicks: [1, 4, 8, 12, 16], xLabel: 'key', yLabel: 'weight' });
          weights.forEach((weight, j) => view.bar(j + 1, weight, 0.7, 1, j ? '' : 'softmax of the first query'));
          view.level(1 / KEYS, 4, `even: 1/${KEYS}`);
        },
      },
    ],
  });
})();
