// LayerNorm in three dimensions: tokens are centred, scaled to a circle of radius √3, and carried to an ellipse by gain and shift.
// The space is turned with the pointer or with a slider.
(() => {
  const { dot, length, matrixNorm, normals, times, format } = Explore;
  const ROOT = Math.sqrt(3), COUNT = 10, TILT = 20, STAGES = ['$x$', '$x − μ1$', '$x̂$', '$γ ⊙ x̂ + β$'];
  const CENTRING = [0, 1, 2].map(i => [0, 1, 2].map(j => (i === j ? 1 : 0) - 1 / 3));   // Π

  function makeTokens() {
    const normal = normals(8);
    return Array.from({ length: COUNT }, () => Array.from({ length: 3 }, () => 0.3 + 1.25 * normal()));
  }
  const TOKENS = makeTokens();

  const mix = (x, y, share) => x.map((value, i) => value + share * (y[i] - value));
  const affine = (x, gamma, beta) => x.map((value, i) => gamma[i] * value + beta[i]);

  const towards = stage => (Number.isInteger(stage) ? '' : '→ ') + STAGES[Math.ceil(stage)];

  // A token at a stage: 0 is x, 1 is x − μ1, 2 is x̂ and 3 is γ ⊙ x̂ + β, with what lies between.
  function at(stage, x, gamma, beta) {
    const centred = times(CENTRING, x), sigma = length(centred) / ROOT;
    const normalised = centred.map(value => value / sigma);
    const steps = [x, centred, normalised, affine(normalised, gamma, beta)], done = Math.min(2, Math.floor(stage));
    return mix(steps[done], steps[done + 1], stage - done);
  }

  function compute({ stage, gain, shift }) {
    const share = Math.max(0, stage - 2);   // how much of gain and shift is in force
    const gamma = mix([1, 1, 1], [gain, 1, 0.5], share), beta = [share * shift, 0, 0];
    const tokens = TOKENS.map(x => at(stage, x, [gain, 1, 0.5], [shift, 0, 0]));
    const before = TOKENS.map(x => at(Math.max(0, Math.ceil(stage) - 1), x, [gain, 1, 0.5], [shift, 0, 0]));
    return {
      tokens, before, gamma, beta, lengths: tokens.map(length), plain: ROOT * Math.max(...gamma),
      bound: ROOT * matrixNorm(CENTRING.map((row, i) => row.map(value => gamma[i] * value))) + length(beta),
    };
  }

  function describe({ stage }, { gamma, beta, lengths, plain, bound }) {
    if (stage === 0) return 'The tokens $x$, as they come.';
    if (stage <= 1) return 'Centring moves every token parallel to 1, into the plane of vectors with sum 0.';
    if (stage <= 2) return 'The division by $σ$ moves every token along its ray from 0 to the point of the circle of radius √3 that is nearest to $x$.';
    const longest = Math.max(...lengths), vector = x => `(${x.map(format).join(', ')})`;
    return `Gain $γ$ = ${vector(gamma)} and shift $β$ = ${vector(beta)} carry the circle to an ellipse about $β$. `
      + `No token gets longer than ${format(bound)}, and the longest here has length ${format(longest)}.`
      + (longest > plain && format(longest) !== format(plain) ? ` It exceeds $√d·max γ_i$ = ${format(plain)}, a bound that holds only without the shift.` : '');
  }

  // Where a point of the space is seen, from far away.
  function camera({ turn }) {
    const [a, e] = [turn, TILT].map(degrees => degrees * Math.PI / 180);
    const right = [-Math.sin(a), Math.cos(a), 0], up = [-Math.sin(e) * Math.cos(a), -Math.sin(e) * Math.sin(a), Math.cos(e)];
    return x => [dot(x, right), dot(x, up)];
  }

  const angles = Array.from({ length: 73 }, (_, i) => i * Math.PI / 36);
  const circle = angles.map(angle => [0, 1, 2].map(i => Math.SQRT2 * Math.cos(angle + i * 2 * Math.PI / 3)));   // sum 0, length √3

  Explore.define('sphere', {
    controls: [
      { name: 'stage', label: 'stage', min: 0, max: 3, step: 0.1, value: 3, show: towards },
      { name: 'gain', label: 'gain $γ_1$', min: 0, max: 1.5, step: 0.05, value: 1.4 },
      { name: 'shift', label: 'shift $β_1$', min: -0.8, max: 0.8, step: 0.05, value: 0.4 },
      { name: 'turn', label: 'turn', min: 0, max: 358, step: 2, value: 80, show: degrees => `${degrees}°` },
    ],
    compute,
    numbers: ({ stage }, { lengths, plain, bound }) => [['longest token', Math.max(...lengths)],
      ...(stage > 2 ? [['$√d·max γ_i$', plain], ['$√d‖D_γΠ‖_2 + ‖β‖$', bound]] : [['$√d$', ROOT]])],
    describe,
    views: [
      {
        height: 320,
        drag: ({ turn }, right) => ({ turn: (turn - right / 2 + 3600) % 360 }),
        draw(axes, state, { tokens, before, gamma, beta }) {
          const see = camera(state), view = axes({ x: [-3, 3], y: [-3, 3], square: true, bare: true });
          view.area(circle.map(see), 3, 'circle of radius √3 orthogonal to 1');
          view.line(angles.map(angle => [ROOT * Math.cos(angle), ROOT * Math.sin(angle)]), 5, 'sphere of radius √3');
          view.line([[-1.5, -1.5, -1.5], [1.5, 1.5, 1.5]].map(see), 4, 'line along 1, and the axes');
          CENTRING.forEach((_, i) => {
            const axis = [0, 1, 2].map(j => (i === j ? 2.2 : 0));
            view.line([see([0, 0, 0]), see(axis)], 4);
            view.text(...see(axis), `$x_${i + 1}$`);
          });
          view.text(...see([1.5, 1.5, 1.5]), '1');
          if (state.stage > 2) view.line(circle.map(x => see(affine(x, gamma, beta))), 2, 'ellipse');
          tokens.forEach((x, i) => view.line([see(before[i]), see(x)], 1));
          view.marks(tokens.map(see), 1, 'tokens');
        },
      },
      {
        height: 320,
        draw(axes, { stage }, { lengths, plain, bound }) {
          const numbers = lengths.map((_, i) => i + 1);
          const view = axes({ x: [0.4, COUNT + 0.6], y: [0, 4], xTicks: numbers, xLabel: 'token', yLabel: 'length' });
          lengths.forEach((value, i) => view.stem(i + 1, value, 1));
          view.marks(lengths.map((value, i) => [i + 1, value]), 1, 'length of a token');
          if (stage > 2) {
            view.level(plain, 4, '$√d·max γ_i$');
            view.level(bound, 2, '$√d‖D_γΠ‖_2 + ‖β‖$');
          } else view.level(ROOT, 5, '$√d$');
        },
      },
    ],
  });
})();
