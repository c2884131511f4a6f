// Uniform causal attention of more and more tokens, and what a sink adds to it.
(() => {
  const { format, spectralNorm } = Explore;
  const MOST = 11;    // up to 2^11 tokens
  const SHOWN = 16;   // tokens of the matrix that are drawn

  const harmonic = n => { let sum = 0; for (let i = n; i >= 1; i -= 1) sum += 1 / i; return sum; };
  const lower = n => { const H = harmonic(n); return Math.sqrt(4 * H / (H + 4)); };
  const upper = n => { const H = harmonic(n); return Math.sqrt(4 - 8 / ((H + 1) ** 2 + 1)); };
  const floor = (s, n) => (s * Math.sqrt(n) + Math.sqrt(n * s * s + 4 * (1 - s))) / 2;   // ρ

  // The norm of A = share 1e₁ᵀ + (1 − share) R, where R is the identity or the running means C_n. Running sums do for products
  // with A and Aᵀ, so there is no matrix.
  function norm(n, share, own) {
    const forward = x => {
      let sum = 0;
      return x.map((value, i) => { sum += value; return share * x[0] + (1 - share) * (own ? value : sum / (i + 1)); });
    };
    const backward = y => {
      const z = new Array(n);
      let sum = 0, total = 0;
      for (let i = n - 1; i >= 0; i -= 1) {
        total += y[i];
        sum += y[i] / (i + 1);
        z[i] = (1 - share) * (own ? y[i] : sum);
      }
      z[0] += share * total;
      return z;
    };
    return spectralNorm(forward, backward, n);
  }

  const powers = n => Array.from({ length: Math.log2(n) }, (_, e) => 2 ** (e + 1));

  function compute({ n, share, own }) {
    const s = share + (own ? 0 : (1 - share) * (harmonic(n) - 1) / (n - 1));   // C_n pays the first token 1/i in row i
    return { uniform: powers(n).map(size => norm(size, 0, false)), lower: lower(n), upper: upper(n), s, norm: norm(n, share, own), floor: floor(s, n) };
  }

  function describe({ n, share, own }, { uniform, lower, upper, s, norm, floor }) {
    return `Uniform causal attention of ${n} tokens has norm ${format(uniform.at(-1))}, between ${format(lower)} and ${format(upper)}, and for no $n$ does it reach 2. `
      + `In $A$ every later token pays ${format(share)} to the first and ${own ? 'keeps the rest' : 'spreads the rest evenly over what it sees'}. `
      + `That is a sink mass of $s$ = ${format(s)}, which forces the norm of $A$ to be at least $ρ$ = ${format(floor)}; it is ${format(norm)}${own ? ', no more than it must be' : ''}.`;
  }

  const everyLength = f => powers(2 ** MOST).map(n => [n, f(n)]);

  Explore.define('cesaro', {
    controls: [
      { name: 'n', label: 'tokens $n$', min: 1, max: MOST, step: 1, value: 6, read: e => 2 ** e },
      { name: 'share', label: 'pay token 1', min: 0, max: 1, step: 0.05, value: 0.2 },
      { name: 'own', label: 'each token keeps the rest', value: false },
    ],
    compute,
    numbers: (state, { uniform, lower, upper, s, norm, floor }) => [
      ['lower bound', lower], ['$‖C_n‖_2$', uniform.at(-1)], ['upper bound', upper], ['sink mass $s$', s], ['floor $ρ$', floor], ['$‖A‖_2$', norm]],
    describe,
    views: [
      {
        height: 300,
        draw(axes, { n }, { uniform }) {
          const view = axes({ x: [2, 2 ** MOST], y: [0.95, 2.05], logX: true, xTicks: [2, 16, 128, 1024], xLabel: 'tokens $n$', yLabel: '$‖C_n‖_2$' });
          view.level(2, 5, 'Hardy’s 2');
          view.line(everyLength(upper), 2, 'upper bound');
          view.marks(powers(n).map((size, e) => [size, uniform[e]]), 1, 'uniform attention $C_n$');
          view.line(everyLength(lower), 4, 'lower bound');
        },
      },
      {
        height: 300,
        draw(axes, { n }, { uniform, s, norm }) {
          const view = axes({ x: [0, 1], y: [0.9, 75], logY: true, xLabel: 'sink mass $s$', yLabel: '$‖A‖_2$' });
          view.level(Math.sqrt(n), 5, '$√n$');
          view.level(uniform.at(-1), 4, '$‖C_n‖_2$');
          view.line(Array.from({ length: 101 }, (_, i) => [i / 100, floor(i / 100, n)]), 2, 'floor $ρ$');
          view.marks([[s, norm]], 3, '$A$', 6);
        },
      },
      {
        height: 200,
        draw(axes, { n, share, own }) {
          const view = axes({ x: [0, 1], y: [0, 1], square: true, bare: true });
          const size = Math.min(n, SHOWN), index = Array.from({ length: size }, (_, i) => i);
          view.matrix(index.map(i => index.map(j => (j ? 0 : share) + (1 - share) * (own ? Number(i === j) : j <= i ? 1 / (i + 1) : 0))));
          view.caption(n > SHOWN ? `$A$, the first ${SHOWN} tokens` : '$A$');
        },
      },
    ],
  });
})();
