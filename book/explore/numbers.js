// The arithmetic of the figures that move: how numbers are written, random ones that are the same everywhere, and linear
// algebra on arrays of rows.
window.Explore = (() => {
  const SUPERSCRIPT = { '-': '⁻', 0: '⁰', 1: '¹', 2: '²', 3: '³', 4: '⁴', 5: '⁵', 6: '⁶', 7: '⁷', 8: '⁸', 9: '⁹' };

  const power = exponent => `10${[...String(exponent)].map(sign => SUPERSCRIPT[sign]).join('')}`;

  // Four significant digits, with powers of ten for what is very large or very small. Zeros at the end say that a number was
  // rounded: 1 is 1 (to twelve digits), and 1.000 is nearly 1.
  function format(x) {
    if (typeof x !== 'number') return x;
    if (Number.isInteger(x) && Math.abs(x) < 1e6) return String(x).replace('-', '−');
    const exponent = Number(x.toExponential(3).split('e')[1]);
    if (exponent > -4 && exponent < 6) {
      const short = String(Number(x.toPrecision(4)));
      return (exponent < 4 && Number(short) !== Number(x.toPrecision(12)) ? x.toPrecision(4) : short).replace('-', '−');
    }
    const [digits, raised] = x.toExponential(2).split('e').map(Number);
    return `${digits === 1 ? '' : `${digits}·`}${power(raised)}`.replace('-', '−');
  }

  // A largest weight of a softmax, which is never 1 where there is another.
  const weight = p => (p > 0.9999 ? 'above 0.9999' : format(p));

  // Generators of random numbers that are the same on every machine: uniform in [0, 1) (mulberry32), and from these normally
  // distributed ones (Box and Muller).
  function uniforms(seed) {
    let a = seed | 0;
    return () => {
      a = (a + 0x6D2B79F5) | 0;
      let t = Math.imul(a ^ (a >>> 15), 1 | a);
      t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
      return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
    };
  }
  function normals(seed) {
    const uniform = uniforms(seed);
    return () => Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform());
  }

  function softmax(scores) {
    const top = Math.max(...scores);
    const powers = scores.map(s => Math.exp(s - top));
    const sum = powers.reduce((a, b) => a + b);
    return powers.map(e => e / sum);
  }

  const dot = (x, y) => x.reduce((sum, value, i) => sum + value * y[i], 0);
  const length = x => Math.hypot(...x);
  const times = (A, x) => A.map(row => dot(row, x));
  function transposedTimes(A, x) {   // row by row, as they lie in memory
    const y = new Array(A[0].length).fill(0);
    A.forEach((row, i) => { for (let j = 0; j < y.length; j += 1) y[j] += row[j] * x[i]; });
    return y;
  }
  const product = (A, B) => A.map(row => transposedTimes(B, row));

  // The largest eigenvalue of a symmetric tridiagonal matrix: halve an interval around it. All pivots of T − t are negative
  // if and only if t is above all eigenvalues.
  function largestEigenvalue(diagonal, beside) {
    let low = Math.max(...diagonal), high = low + 2 * Math.max(0, ...beside);
    for (;;) {
      const middle = (low + high) / 2;
      if (middle <= low || middle >= high) return high;
      let pivot = -1;
      for (let k = 0; k < diagonal.length && pivot < 0; k += 1) pivot = diagonal[k] - middle - (k ? beside[k - 1] ** 2 / pivot : 0);
      if (pivot < 0) high = middle;
      else low = middle;
    }
  }

  // The largest singular value of x -> forward(x), by Lanczos' method on AᵀA from a vector with no symmetry: it finds the norm
  // also where the next singular value is close. It stops when a step changes nothing, or after 200 steps.
  function spectralNorm(forward, backward, size) {
    const diagonal = [], beside = [];
    const start = Array.from({ length: size }, (_, i) => 1 + 0.1 * Math.sin(i + 1));
    let x = start.map(value => value / length(start)), earlier = x, beta = 0, top = 0;
    for (let step = 0; step < 200; step += 1) {
      const image = backward(forward(x)), alpha = dot(x, image);
      const rest = image.map((value, i) => value - alpha * x[i] - beta * earlier[i]);
      diagonal.push(alpha);
      const found = largestEigenvalue(diagonal, beside);
      beta = length(rest);
      if (found - top <= 1e-15 * found || beta <= 1e-14 * found) return Math.sqrt(found);
      beside.push(beta);
      [earlier, x, top] = [x, rest.map(value => value / beta), found];
    }
    return Math.sqrt(top);
  }
  const matrixNorm = A => spectralNorm(x => times(A, x), y => transposedTimes(A, y), A[0].length);

  // Queries and keys of n ≥ 2 tokens, drawn one token after the other: if n grows, the first ones stay.
  function queriesAndKeys(normal, n, width = 4) {
    const vector = () => Array.from({ length: width }, normal);
    const tokens = Array.from({ length: n }, () => [vector(), vector()]);
    return [tokens.map(([q]) => q), tokens.map(([, k]) => k)];
  }

  // Their attention matrix; one factor for all logits makes Delta the largest span of a row.
  function attention(Q, K, Delta, causal) {
    const S = Q.map((q, i) => K.slice(0, causal ? i + 1 : K.length).map(k => dot(q, k)));
    const span = Math.max(...S.map(row => Math.max(...row) - Math.min(...row)));
    return S.map(row => [...softmax(row.map(s => s * Delta / span)), ...new Array(K.length - row.length).fill(0)]);
  }

  return { format, power, weight, uniforms, normals, softmax, dot, length, times, product, spectralNorm, matrixNorm, queriesAndKeys, attention };
})();
