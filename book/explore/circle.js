// Tokens on a circle, passed through 20 layers of one attention head with and without a skip: the largest distance r between two
// of them against depth, with the theorems' bounds. w = 1 and v = 2 as in the figure above; W_QK = w·I, W_VO = v times a turn.
(() => {
  const { dot, format } = Explore;
  const W = 1, V = 2, C = W * V / 4, THRESHOLD = Math.sqrt(4 / W * Math.atanh(1 / V));
  const DEPTH = 20, FLOOR = 1e-30;   // layers; and a distance below which no more are computed

  // The corners of a regular polygon; the farthest two are r apart.
  function circle(n, r) {
    const radius = r / 2 / Math.sin(Math.PI * Math.floor(n / 2) / n);
    return Array.from({ length: n }, (_, i) => 2 * Math.PI * i / n + 0.5)
      .map(angle => [radius * Math.cos(angle), radius * Math.sin(angle)]);
  }

  // A·X with A = softmax(w X Xᵀ). Tokens that lie evenly have mean 0 and keep it, so in Σ exp(sⱼ) xⱼ the ones of exp(sⱼ) ≈ 1
  // cancel. They are left out where scores are small: with them, close tokens would lose all their digits.
  function average(X) {
    return X.map(x => {
      const scores = X.map(other => W * dot(x, other)), top = Math.max(...scores);
      const powers = scores.map(s => Math.exp(s - top)), sum = powers.reduce((a, b) => a + b);
      const weights = top < 1 ? scores.map(s => Math.expm1(s) / Math.exp(top) / sum) : powers.map(power => power / sum);
      return [0, 1].map(a => X.reduce((total, other, j) => total + weights[j] * other[a], 0));
    });
  }

  function layer(X, turn, skip) {
    const [cos, sin] = [Math.cos(turn), Math.sin(turn)].map(value => V * value);
    return average(X).map(([x, y], i) => [cos * x - sin * y, sin * x + cos * y].map((value, a) => value + (skip ? X[i][a] : 0)));
  }

  const farthest = X => Math.max(...X.flatMap(x => X.map(other => Math.hypot(x[0] - other[0], x[1] - other[1]))));

  // next(next(… first)), as long as size(…) does not fall below the floor.
  function repeat(first, next, size = x => x) {
    const found = [first];
    while (found.length <= DEPTH && size(next(found.at(-1))) >= FLOOR) found.push(next(found.at(-1)));
    return found;
  }

  function compute({ n, start, turn, skip }) {
    const tokens = repeat(circle(n, start), X => layer(X, turn * Math.PI / 180, skip), farthest);
    const r = tokens.map(farthest);
    // Without a skip r is at most v·r·tanh(¼wr²) a layer. With one, 1/(C r²) grows by at most 4 a layer while C r² ≤ ⅓.
    const upper = skip ? [] : repeat(start, bound => V * bound * Math.tanh(W * bound ** 2 / 4));
    const promised = r.findIndex(distance => C * distance ** 2 > 1 / 3);
    const held = !skip ? [] : promised < 0 ? r : r.slice(0, promised + 1);
    const lower = held.map((_, l) => 1 / Math.sqrt(C * (1 / (C * start ** 2) + 4 * l)));
    return { tokens, digits: r.map(Math.log10), upper: upper.map(Math.log10), lower };   // logarithms of what may be tiny
  }

  const last = digits => (digits.length > DEPTH ? 10 ** digits[DEPTH] : `below ${format(FLOOR)}`);

  function describe({ start, skip, n }, { digits, lower }) {
    const inside = log => 10 ** log < THRESHOLD;
    const seen = `The largest distance starts at ${format(start)}, and after ${DEPTH} layers it is ${format(last(digits))}. `;
    if (!skip) return seen + (start < THRESHOLD
      ? 'It starts below $r_∗$, so it tends to 0 in every network of single heads with these $w$ and $v$: no layer leaves more of $√C·r$ than its cube.'
      : `It starts beyond $r_∗$, where two tokens can move apart. These ${n} `
        + (digits.some(inside) ? 'come below it all the same, and collapse.' : `stay beyond it for ${DEPTH} layers.`));
    if (lower.length > DEPTH) return seen + `As $C·r^2$ is at most ⅓ before each layer, it cannot fall below ${format(lower[DEPTH])}: `
      + 'the closer the tokens, the less attention can do to them.';
    return seen + `Where $C·r^2$ is above ⅓, the lower bound ends. ` + (digits.every(inside)
      ? 'But $r$ stays below $r_∗$, so none of these layers can make all tokens equal.'
      : 'Beyond $r_∗$ the theorem does not keep a layer from making all tokens equal.');
  }

  Explore.define('circle', {
    controls: [
      { name: 'skip', label: 'skip connection', value: true },
      { name: 'start', label: 'first distance $r_0$', min: 0.1, max: 2.5, step: 0.02, value: 0.8 },
      { name: 'turn', label: 'values turn', min: 0, max: 180, step: 5, value: 150, show: degrees => `${degrees}°` },
      { name: 'n', label: 'tokens $n$', min: 2, max: 12, step: 1, value: 8 },
    ],
    compute,
    numbers: ({ skip }, { digits, lower, upper }) => [
      ['$w$', W], ['$v$', V], ['$C$ = ¼$w$$v$', C], ['$r_∗$', THRESHOLD], [`$r$ after ${DEPTH} layers`, last(digits)],
      ...(skip ? [] : [['upper bound', last(upper)]]), ...(lower.length > DEPTH ? [['lower bound', lower[DEPTH]]] : [])],
    describe,
    views: [
      {
        draw(axes, state, { tokens }) {
          const size = 1.1 * Math.max(THRESHOLD / 2, ...tokens.flat(2).map(Math.abs));
          const view = axes({ x: [-size, size], y: [-size, size], square: true, bare: true });
          const turn = Array.from({ length: 73 }, (_, i) => i * Math.PI / 36);
          view.line(turn.map(angle => [Math.cos(angle), Math.sin(angle)].map(value => THRESHOLD / 2 * value)), 4, 'circle of diameter $r_∗$');
          tokens[0].forEach((_, i) => view.line(tokens.map(X => X[i]), 5, i ? '' : 'layer by layer'));
          view.marks(tokens[0], 4, 'tokens at the start');
          view.marks(tokens.at(-1), 1, 'at the end');
        },
      },
      {
        draw(axes, state, { digits, lower, upper }) {
          const points = values => values.map((value, layer) => [layer, value]);
          const r = digits.map(value => 10 ** value), most = upper.map(value => 10 ** value);
          const shown = [...r, ...lower, ...most, THRESHOLD].map(Math.log10);
          const y = [10 ** Math.floor(Math.min(...shown)), 10 ** Math.ceil(Math.max(...shown))];
          const view = axes({ x: [0, DEPTH], y, logY: true, xLabel: 'layers', yLabel: 'largest distance $r$' });
          view.level(THRESHOLD, 4, '$r_∗$');
          if (most.length) view.line(points(most), 2, 'upper bound');
          if (lower.length > 1) view.line(points(lower), 3, 'lower bound');
          view.line(points(r), 1, '$r$');
          view.marks(points(r), 1, '', 2.5);
        },
      },
    ],
  });
})();
