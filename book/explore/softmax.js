// Scores that can be dragged: the softmax of s/τ, the norm of its Jacobian J, and the bounds between which the theorem puts it.
(() => {
  const { softmax, spectralNorm, format, weight } = Explore;

  const tokens = n => Array.from({ length: n }, (_, i) => i + 1);

  // ‖J‖₂ for J = diag(p) − ppᵀ: (Jx)ᵢ is pᵢ times xᵢ minus the mean, here as a sum of differences, exact also where p is nearly 1.
  function jacobianNorm(p) {
    const apply = x => p.map((own, i) => own * p.reduce((sum, other, j) => sum + other * (x[i] - x[j]), 0));
    return spectralNorm(apply, apply, p.length);
  }

  function compute({ scores, n, temperature }) {
    const p = softmax(scores.slice(0, n).map(score => score / temperature));
    const spread = Math.max(...p.map((own, i) => own * p.reduce((sum, other, j) => (j === i ? sum : sum + other), 0)));
    return { p, norm: jacobianNorm(p), lower: n / (n - 1) * spread, upper: Math.min(Math.max(...p), 2 * spread) };
  }

  Explore.define('softmax', {
    start: () => ({ scores: [3, 2, 1, 0, -1, -2, 0, 1] }),
    controls: [
      { name: 'n', label: 'scores $n$', min: 2, max: 8, step: 1, value: 5 },
      { name: 'temperature', label: 'divide by $τ$', min: -2, max: 6, step: 1, value: 0, read: e => 2 ** e },
    ],
    compute,
    numbers: (state, { p, norm, lower, upper }) => [
      ['largest weight', weight(Math.max(...p))], ['lower bound $n/(n−1) · max p(1−p)$', lower], ['$‖J‖_2$', norm], ['upper bound $min(max p, 2 max p(1−p))$', upper]],
    describe: ({ temperature }, { p, norm }) => `The largest weight is ${weight(Math.max(...p))}. To first order, a change of ${temperature === 1 ? 'the scores' : '$s/τ$'} `
      + `changes the weights by at most $‖J‖_2$ = ${format(norm)} times its length. No scores give more than ½, which is the norm where two tokens share all the weight equally.`,
    views: [
      {
        height: 300,
        draw(axes, { scores, n }) {
          const view = axes({ x: [0.4, n + 0.6], y: [-6, 6], xTicks: tokens(n), xLabel: 'token', yLabel: 'score $s$ (drag it)' });
          for (let i = 0; i < n; i += 1) view.stem(i + 1, scores[i], 1);
        },
        handles: state => state.scores.slice(0, state.n).map((value, i) => ({
          x: i + 1, value, min: -6, max: 6, step: 0.1, label: `score of token ${i + 1}`, set: score => { state.scores[i] = score; },
        })),
      },
      {
        height: 300,
        draw(axes, { n }, { p, norm, lower, upper }) {
          const view = axes({ x: [0.4, n + 0.6], y: [0, 1], xTicks: tokens(n), xLabel: 'token', yLabel: 'weight' });
          p.forEach((height, i) => view.bar(i + 1, height, 0.7, 1, i ? '' : 'weights $p$'));
          view.level(upper, 2, 'upper bound');
          view.level(norm, 3, '$‖J‖_2$');
          view.level(lower, 4, 'lower bound');
        },
      },
    ],
  });
})();
