// Reading on with rotary positions: a head of 16 pairs, trained on 512 tokens, reads a longer text with the frequencies of a
// remedy. It is aimed at a distance as sharply as it can be: all pairs have one length, and all waves peak there.
(() => {
  const { format } = Explore;
  const PAIRS = 16, BASE = 10000, TRAINED = 512, FURTHEST = 60;
  const REMEDIES = ['none', 'all pairs slower', 'another base', 'YaRN'];
  const DISTANCES = Array.from({ length: FURTHEST + 1 }, (_, t) => t);
  const OWN = Array.from({ length: PAIRS }, (_, i) => BASE ** (-i / PAIRS));

  // YaRN: a pair that turns more than 32 times in training keeps its frequency, one that turns less than once is slowed down.
  const index = turns => PAIRS * Math.log(TRAINED / (turns * 2 * Math.PI)) / Math.log(BASE);
  const [first, last] = [Math.floor(index(32)), Math.ceil(index(1))];
  const slowed = i => Math.min(1, Math.max(0, (i - first) / (last - first)));
  const WAYS = [
    speed => speed,
    (speed, i, times) => speed / times,
    (speed, i, times) => speed / times ** (i / (PAIRS - 1)),
    (speed, i, times) => speed * (1 - slowed(i)) + speed / times * slowed(i),
  ];

  const mean = values => values.reduce((sum, value) => sum + value, 0) / values.length;

  function compute({ times, remedy, aim }) {
    const speeds = OWN.map((speed, i) => WAYS[remedy](speed, i, times));
    const scores = theta => DISTANCES.map(t => mean(theta.map(speed => Math.cos(speed * (t - aim)))));
    const lead = theta => 1 - mean(theta.map(Math.cos));
    const met = OWN.map(speed => speed * (TRAINED - 1)), now = speeds.map(speed => speed * (TRAINED - 1) * times);   // at the largest distance
    return {
      scores: scores(speeds), own: scores(OWN), lead: lead(speeds), before: lead(OWN),
      trained: met.map(angle => angle / (2 * Math.PI)), turns: now.map(angle => angle / (2 * Math.PI)),
      unmet: now.filter((angle, i) => angle > met[i] * (1 + 1e-9) && met[i] < 2 * Math.PI).length,
    };
  }

  Explore.define('beyond', {
    controls: [
      { name: 'times', label: 'length of the text, in lengths of the training', min: 1, max: 16, step: 1, value: 8 },
      { name: 'remedy', label: 'remedy', min: 0, max: REMEDIES.length - 1, step: 1, value: 1, show: k => REMEDIES[k] },
      { name: 'aim', label: 'aimed at distance', min: 1, max: FURTHEST - 1, step: 1, value: 20 },
    ],
    compute,
    numbers: ({ times }, { lead, before, unmet }) => [
      ['lead over the neighbours', lead], ['lead as trained', before], ['how many times smaller', before / lead],
      [`pairs, of ${PAIRS}, at angles that they never met`, unmet], ['tokens read', times * TRAINED]],
    describe: ({ times, remedy, aim }, { lead, before, unmet }) =>
      `A head that is aimed at the distance ${aim} leads the distances beside it by ${format(lead)} of its largest score`
      + `${remedy && times > 1 ? `, where it led by ${format(before)} as trained` : ''}. Of its ${PAIRS} pairs ${unmet || 'none'} `
      + `${unmet > 1 ? 'meet' : 'meets'} angles that no text of ${TRAINED} tokens has shown it.`,
    views: [
      {
        draw(axes, { aim }, { scores, own }) {
          const view = axes({ x: [0, FURTHEST], y: [-0.4, 1.05], xLabel: 'distance', yLabel: 'score' });
          view.line(DISTANCES.map(t => [t, own[t]]), 4, 'as trained');
          view.line(DISTANCES.map(t => [t, scores[t]]), 1, 'with the remedy');
          view.marks([[aim, 1]], 3, 'aimed at');
        },
      },
      {
        draw(axes, state, { trained, turns }) {
          const view = axes({ x: [0, PAIRS - 1], y: [1e-3, 3e3], logY: true, xLabel: 'pair, fastest first', yLabel: 'turns at the largest distance' });
          view.marks(trained.map((turn, i) => [i, turn]), 4, 'in training', 5);
          view.marks(turns.map((turn, i) => [i, turn]), 1, 'in this text', 3);
          view.level(1, 2, 'one turn');
        },
      },
    ],
  });
})();
