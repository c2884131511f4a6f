// How a message spreads under a sparse mask: a window with gaps and global tokens, and how many layers each token waits for it.
(() => {
  const { format } = Explore;
  const N = 48;
  const TOKENS = Array.from({ length: N }, (_, i) => i);

  const sees = (i, j, { window, gap, everywhere }) => {
    const distance = Math.abs(i - j);
    return i < everywhere || j < everywhere || (distance % gap === 0 && distance <= window * gap);
  };

  // Layers until each token has heard of the source, −1 where it never does.
  function layersUntil(mask, source) {
    const heard = TOKENS.map(i => (i === source ? 0 : -1));
    for (let layer = 1, more = true; more; layer += 1) {
      const next = TOKENS.filter(i => heard[i] < 0 && mask[i].some((seen, j) => seen && heard[j] >= 0 && heard[j] < layer));
      for (const i of next) heard[i] = layer;
      more = next.length > 0;
    }
    return heard;
  }

  function compute(state) {
    const mask = TOKENS.map(i => TOKENS.map(j => Number(sees(i, j, state))));
    const heard = layersUntil(mask, state.source);
    return {
      mask, heard, keys: mask[N / 2].reduce((sum, seen) => sum + seen), pairs: mask.flat().reduce((sum, seen) => sum + seen) / N ** 2,
      by: heard.filter(layer => layer >= 0 && layer <= state.layers).length, last: Math.max(...heard), never: heard.filter(layer => layer < 0).length,
    };
  }

  const layer = count => `${count} ${count === 1 ? 'layer' : 'layers'}`;
  const token = count => `${count} ${count === 1 ? 'token' : 'tokens'}`;

  Explore.define('gossip', {
    controls: [
      { name: 'window', label: 'window $w$, to either side', min: 0, max: 8, step: 1, value: 2 },
      { name: 'gap', label: 'gap', min: 1, max: 8, step: 1, value: 1 },
      { name: 'everywhere', label: 'global tokens $g$', min: 0, max: 4, step: 1, value: 0 },
      { name: 'layers', label: 'layers $L$', min: 0, max: 24, step: 1, value: 3 },
      { name: 'source', label: 'the token that has news', min: 0, max: N - 1, step: 1, value: N / 2 },
    ],
    compute,
    numbers: ({ layers }, { keys, pairs, by, last, never }) => [
      [`of ${N} tokens, those that have heard after ${layer(layers)}`, by], ['never hear', never],
      ['layers until the last one that hears', last], ['keys of the token in the middle', keys], ['share of all pairs', pairs]],
    describe: ({ window, gap, everywhere, layers }, { by, last, never, pairs }) =>
      `With a window of ${window}${gap > 1 ? ` and gaps of ${gap}` : ''}${everywhere ? ` and ${token(everywhere)} seen by all` : ''}, ${format(pairs)} of all pairs, `
      + `${by} of ${N} tokens have heard after ${layer(layers)}. ${never ? `However many layers there are, ${token(never)} never ${never === 1 ? 'hears' : 'hear'}.` : `The last one hears after ${layer(last)}.`}`,
    views: [
      {
        draw(axes, state, { mask }) {
          const view = axes({ x: [0, 1], y: [0, 1], square: true, bare: true });
          view.matrix(mask);
          view.caption('row: who sees; column: who is seen');
        },
      },
      {
        draw(axes, { layers, source }, { heard }) {
          const view = axes({ x: [0, N - 1], y: [0, 25], xLabel: 'token', yLabel: 'layers until it has heard' });
          const shown = kept => TOKENS.filter(i => heard[i] >= 0 && kept(heard[i])).map(i => [i, Math.min(heard[i], 25)]);
          view.marks(shown(at => at <= layers), 1, 'has heard', 4);
          view.marks(shown(at => at > layers), 2, 'will hear', 3);
          view.marks([[source, 0]], 3, 'has the news', 6);
          view.level(layers, 4, 'layers so far');
        },
      },
    ],
  });
})();
