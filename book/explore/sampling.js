// The next token of one sentence: temperature, top-k and top-p, and draws from what they leave. The logits of all tokens are
// stored, from the largest to the smallest, as values and how often each stands there.
(() => {
  const { softmax, uniforms, format } = Explore;
  const NAMED = 12, DRAWS = 10, VOCABULARY = 49152;
  const KEPT = [1, 2, 3, 5, 10, 20, 50, 100, 1000, VOCABULARY];

  const expand = runs => runs.flatMap(([logit, count]) => new Array(count).fill(logit));

  // They are in order already, so the first ones are the most probable.
  function law({ stored, temperature, top_k: topK, top_p: topP }) {
    const p = softmax(expand(stored.logits).map(logit => logit / temperature)).slice(0, topK);
    const wanted = topP * p.reduce((sum, q) => sum + q);
    let before = 0;
    const end = topP < 1 ? p.findIndex(q => { const enough = before >= wanted; before += q; return enough; }) : -1;
    const kept = end < 0 ? p : p.slice(0, end);
    const total = kept.reduce((sum, q) => sum + q);
    return kept.map(q => q / total);
  }

  function draw(p, u) {
    let rank = 0;
    for (let sum = p[0]; sum <= u && rank < p.length - 1; sum += p[rank]) rank += 1;
    return rank;
  }

  function compute(state) {
    const p = law(state), uniform = uniforms(state.seed);
    return {
      p: Array.from({ length: NAMED }, (_, rank) => p[rank] ?? 0),
      others: p.slice(NAMED).reduce((sum, q) => sum + q, 0),
      kept: p.length,
      drawn: Array.from({ length: DRAWS }, () => draw(p, uniform())),
    };
  }

  Explore.define('sampling', {
    start: stored => ({ stored }),
    controls: [
      { name: 'temperature', label: 'temperature $τ$', min: -8, max: 4, step: 1, value: 0, read: e => 2 ** (e / 4), show: t => t.toFixed(2) },
      { name: 'top_k', label: 'top-$k$', min: 0, max: KEPT.length - 1, step: 1, value: KEPT.length - 1, read: i => KEPT[i], show: k => (k === VOCABULARY ? 'all' : format(k)) },
      { name: 'top_p', label: 'top-$p$', min: 0.05, max: 1, step: 0.05, value: 1, show: p => p.toFixed(2) },
      { name: 'seed', label: 'Draw again', value: 1, press: seed => seed + 1 },
    ],
    compute,
    numbers: (state, { p, others, kept }) => [
      ['tokens that can be drawn', kept], [`probability of “${state.stored.names[0].trim()}”`, p[0]], ['of all others together', others]],
    describe: ({ stored }, { drawn }) => `Drawn ten times, the sentence goes on with: ${
      drawn.map(rank => (stored.names[rank] ? `“${stored.names[rank].trim()}”` : 'a rare one')).join(', ')}.`,
    views: [
      {
        height: 26 * (NAMED + 1) + 20,
        draw(axes, { stored }, { p, others }) {
          const view = axes({ x: [-0.4, 1.2], y: [-NAMED - 1, 0], bare: true });
          const asTrained = compute({ stored, temperature: 1, top_k: VOCABULARY, top_p: 1, seed: 1 });
          [...p, others].forEach((q, row) => {
            const name = row < NAMED ? stored.names[row].trim() : 'all others';
            const first = row === 0;
            view.text(-0.4, -row - 0.68, name);
            view.area([[0, -row - 0.2], [q, -row - 0.2], [q, -row - 0.8], [0, -row - 0.8]], 1, first ? 'what is drawn from' : '');
            const before = row < NAMED ? asTrained.p[row] : asTrained.others;
            view.line([[before, -row - 0.1], [before, -row - 0.9]], 2, first ? 'as the model gives it' : '');
            view.text(1.02, -row - 0.68, q === 0 ? '0' : q < 0.0005 ? '<0.001' : q.toFixed(3));
          });
        },
      },
    ],
  });
})();
