// What a span of logits allows: the bounds, the worst matrices, and random ones, without a mask and with the causal one.
(() => {
  const { format, normals, queriesAndKeys, attention, matrixNorm, length } = Explore;
  const DRAWS = 3;    // random matrices
  const WIDEST = 8;   // the end of the axis

  const cosh = Delta => Math.cosh(Delta / 2);
  const hardy = Delta => 1 + Math.exp(Delta / 2);
  const notes = (Delta, n) => Math.sqrt(n / (1 + (n - 1) * Math.exp(-Delta)));   // √(nα)

  // Without a mask: all rows give weight t to the same k tokens, 1 to the others; k is the best there is.
  function worstUnmasked(n, t) {
    let best = { norm: 0 };
    for (let k = 1; k <= n; k += 1) {
      const norm = Math.sqrt(n * (k * t * t + n - k)) / (k * t + n - k);
      if (norm > best.norm) best = { norm, favoured: new Array(n).fill(k) };
    }
    return best;
  }

  // With the mask: each row gives weight t to its first few tokens, 1 to the others. In turn the best rows for x, which favour
  // the tokens above their own mean, and a better x for these rows, by a step of the power method. x always decreases, so the
  // means do, and no row favours fewer tokens than the row before.
  function climb(n, t, power) {
    let x = Array.from({ length: n }, (_, i) => (i + 1) ** -power);
    let norm, favoured;
    for (let step = 0; step < 100; step += 1) {
      const sums = [0];
      for (const value of x) sums.push(sums.at(-1) + value);
      const y = [], next = new Array(n).fill(0), ends = new Array(n).fill(0);
      favoured = [];
      let k = 1;
      for (let i = 1; i <= n; i += 1) {
        const mean = () => (sums[i] + (t - 1) * sums[k]) / (i + (t - 1) * k);
        while (k < i && x[k] > mean()) k += 1;
        y.push(mean());
        favoured.push(k);
        const share = y[i - 1] / (i + (t - 1) * k);   // of weight 1 in row i of Aᵀy
        next[i - 1] += share;
        ends[k - 1] += (t - 1) * share;
      }
      for (let j = n - 2; j >= 0; j -= 1) { next[j] += next[j + 1]; ends[j] += ends[j + 1]; }
      norm = length(y) / length(x);
      const scale = next[0] + ends[0];
      x = next.map((value, j) => (value + ends[j]) / scale);
    }
    return { norm, favoured };
  }

  const worstCausal = (n, t) => [0.4, 0.6, 2].map(power => climb(n, t, power)).reduce((best, other) => (other.norm > best.norm ? other : best));

  function compute({ n, Delta, causal, seed }) {
    const normal = normals(seed);
    const tokens = Array.from({ length: DRAWS }, () => queriesAndKeys(normal, n));
    const { norm, favoured } = (causal ? worstCausal : worstUnmasked)(n, Math.exp(Delta));
    return {
      random: tokens.map(([Q, K]) => matrixNorm(attention(Q, K, Delta, causal))),
      worst: norm, favoured, cosh: cosh(Delta), hardy: hardy(Delta), notes: notes(Delta, n),
    };
  }

  function describe({ n, Delta, causal }, { random, worst, favoured, cosh, hardy, notes }) {
    const root = Math.sqrt(n), largest = format(Math.max(...random));
    const useless = bound => (bound >= root ? '; for this $n$ that is no news, since no norm exceeds √n' : '');
    if (!causal) return `Without a mask no attention matrix of ${n} tokens and span ${format(Delta)} has a larger norm than ${format(worst)}: it is reached where all rows give $exp(Δ)$ times the weight of the others to the same ${favoured[0]} of ${n} tokens. `
      + `Whatever $n$ is, the norm is at most $cosh(Δ/2)$ = ${format(cosh)}${useless(cosh)}. Of ${DRAWS} random matrices the largest norm is ${largest}.`;
    const broken = [['$cosh(Δ/2)$', cosh], ['the notes’ $√(nα)$', notes]].filter(([, bound]) => worst > bound && format(worst) !== format(bound))
      .map(([name, bound]) => `${name} = ${format(bound)}`).join(' and than ');   // if they can be told apart
    return `With the causal mask the worst matrix found has norm ${format(worst)}: each row gives $exp(Δ)$ times the weight of the others to the first tokens it sees. ${broken && `That is more than ${broken}, which no matrix without a mask exceeds. `}`
      + `Whatever $n$ is, the norm is below $1 + exp(Δ/2)$ = ${format(hardy)}${useless(hardy)}. Of ${DRAWS} random matrices the largest norm is ${largest}.`;
  }

  const curve = f => Array.from({ length: 81 }, (_, i) => [i / 80 * WIDEST, f(i / 80 * WIDEST)]);

  Explore.define('span', {
    controls: [
      { name: 'n', label: 'tokens $n$', min: 1, max: 7, step: 1, value: 6, read: e => 2 ** e },
      { name: 'Delta', label: 'span $Δ$', min: 0, max: WIDEST, step: 0.1, value: 3 },
      { name: 'causal', label: 'causal mask', value: false },
      { name: 'seed', label: 'Draw again', value: 1, press: seed => seed + 1 },
    ],
    compute,
    numbers: ({ n }, { random, worst, cosh, hardy, notes }) => [
      ['largest random $‖A‖_2$', Math.max(...random)], ['worst $‖A‖_2$', worst], ['$cosh(Δ/2)$', cosh], ['$1 + exp(Δ/2)$', hardy], ['the notes’ $√(nα)$', notes], ['$√n$', Math.sqrt(n)]],
    describe,
    views: [
      {
        height: 320,
        draw(axes, { n, Delta, causal }, { random, worst }) {
          const root = Math.sqrt(n), capped = f => curve(x => Math.min(root, f(x)));
          const view = axes({ x: [0, WIDEST], y: [0, 1.08 * root], xTicks: [0, 2, 4, 6, 8], xLabel: 'span $Δ$', yLabel: '$‖A‖_2$' });
          view.level(root, 5, '$√n$');
          view.line(curve(x => notes(x, n)), 4, 'the notes’ $√(nα)$');
          view.line(capped(cosh), 1, '$cosh(Δ/2)$, no mask');
          view.line(capped(hardy), 2, '$1 + exp(Δ/2)$, causal');
          view.marks(random.map(norm => [Delta, norm]), 3, 'random queries and keys');
          view.marks([[Delta, worst]], causal ? 2 : 1, causal ? 'worst causal matrix found' : 'worst matrix', 6);
        },
      },
      {
        height: 320,
        draw(axes, { n, causal }, { favoured }) {
          const view = axes({ x: [0, n], y: [0, n], square: true, bare: true });
          view.caption(causal ? 'The worst matrix found:' : 'The worst matrix:');
          const edge = ends => ends.flatMap((end, i) => [[end, n - i], [end, n - i - 1]]);   // down the rows
          const seen = favoured.map((_, i) => (causal ? i + 1 : n));
          view.area([[0, n], ...edge(favoured), [0, 0]], causal ? 2 : 1, 'weight $exp(Δ)$, on the left');
          view.area([...edge(seen), ...edge(favoured).reverse()], 5, 'weight 1; each row is then divided by its sum');
        },
      },
    ],
  });
})();
