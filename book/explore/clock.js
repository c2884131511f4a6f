// The hands of rotary positions: a query and a key whose pairs all have one length, aimed at an offset. Their score at any offset
// is the mean of the horizontal coordinates of hands that turn at the speeds of the pairs.
(() => {
  const { format } = Explore;
  const FURTHEST = 200;
  const OFFSETS = Array.from({ length: FURTHEST + 1 }, (_, j) => j - FURTHEST);

  function compute({ offset, pairs, base, aim }) {
    const speeds = Array.from({ length: pairs }, (_, i) => base ** (-i / pairs));
    const score = at => speeds.reduce((sum, speed) => sum + Math.cos(speed * (at - aim)), 0) / pairs;
    const scores = OFFSETS.map(score);
    return {
      hands: speeds.map(speed => [Math.cos(speed * (offset - aim)), Math.sin(speed * (offset - aim))]),
      scores, score: score(offset), slowest: speeds.at(-1),
      elsewhere: Math.max(...scores.filter((_, j) => OFFSETS[j] !== aim)),
      whole: speeds.filter(speed => speed * FURTHEST >= 2 * Math.PI).length,
    };
  }

  const hands = count => (count === 1 ? 'the only hand' : `the ${count} hands`);

  Explore.define('clock', {
    controls: [
      { name: 'offset', label: 'offset of the key', min: -FURTHEST, max: 0, step: 1, value: -10 },
      { name: 'aim', label: 'aimed at', min: -100, max: 0, step: 1, value: -20 },
      { name: 'pairs', label: 'pairs $m$ = ½$d_h$', min: 1, max: 32, step: 1, value: 4 },
      { name: 'base', label: 'base $b$', min: 1, max: 6, step: 1, value: 4, read: e => 10 ** e },
    ],
    compute,
    numbers: (state, { score, slowest, elsewhere, whole }) => [
      ['score at this offset', score], ['highest score where it was not aimed', elsewhere],
      ['speed of the slowest hand, radians', slowest], [`hands that complete a turn in ${FURTHEST} tokens`, whole]],
    describe: ({ offset, aim, pairs }, { score, elsewhere, whole }) =>
      `At the offset ${format(aim)} ${hands(pairs)} ${pairs === 1 ? 'points' : 'all point'} to the right, and the score is 1. `
      + (offset === aim ? '' : `At ${format(offset)} the mean of the horizontal coordinates, which is the score, is ${format(score)}. `)
      + `At no other of these offsets is it above ${format(elsewhere)}, and ${whole} of ${pairs} `
      + `${pairs === 1 ? 'hand' : 'hands'} ${whole === 1 ? 'completes' : 'complete'} a turn within ${FURTHEST} tokens.`,
    views: [
      {
        draw(axes, state, { hands }) {
          const view = axes({ x: [-1.15, 1.15], y: [-1.15, 1.15], square: true, bare: true });
          const turn = Array.from({ length: 73 }, (_, i) => i * Math.PI / 36);
          view.line(turn.map(angle => [Math.cos(angle), Math.sin(angle)]), 4, '');
          hands.forEach((tip, i) => view.line([[0, 0], tip], i ? 1 : 2, ['fastest hand', 'the others'][i]));
          view.marks(hands.slice(1), 1, '', 3.5);
          view.marks(hands.slice(0, 1), 2, '', 3.5);
        },
      },
      {
        draw(axes, { offset, aim }, { scores, score }) {
          const view = axes({ x: [-FURTHEST, 0], y: [-1.05, 1.05], xLabel: 'offset of the key', yLabel: 'score' });
          view.line(OFFSETS.map((at, j) => [at, scores[j]]), 1, 'score');
          view.marks([[aim, 1]], 3, 'aimed at');
          view.marks([[offset, score]], 2, 'this offset', 5);
        },
      },
    ],
  });
})();
