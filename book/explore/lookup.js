// One token reads three: its query and the keys in the plane, the weights that softmax makes of their dot products, and the output
// among the values. The numbers at the start are those of the chapter's example.
(() => {
  const { dot, format, softmax } = Explore;
  const NAMES = ['old', 'river', 'bank'], FAR = 3;   // how far a query or a key is dragged

  function compute({ query, keys, values, divide }) {
    const scores = keys.map(key => dot(query, key) / (divide ? Math.SQRT2 : 1)), weights = softmax(scores);
    return { scores, weights, output: [0, 1].map(a => dot(weights, values.map(value => value[a]))) };
  }

  const vector = x => `(${x.map(format).join(', ')})`;
  const short = p => (p < 0.005 ? '<0.01' : p > 0.995 ? '>0.99' : p.toFixed(2));

  function describe({ query, keys }, { weights, output }) {
    const most = weights.indexOf(Math.max(...weights));
    const products = keys.map((key, j) => `${format(Number(dot(query, key).toPrecision(12)))} with ${NAMES[j]}`).join(', ');
    return `The query $q$ = ${vector(query)} has the dot products ${products}. `
      + `So ${NAMES[most]} is read most, with weight ${short(weights[most])}. The output is $o$ = ${vector(output)}: `
      + 'wherever you drag the query and the keys, it stays in the triangle of the values.';
  }

  const handles = (state, what, label, far) => state[what].map((at, j) => ({
    at, kind: 1, min: -far, max: far, step: 0.1, label: `${label} of ${NAMES[j]}`, set: to => { state[what][j] = to; } }));

  // A word above a point or below it; `unit` is its distance.
  const name = (view, [x, y], words, unit) => view.text(x, y + (y > 0 ? 0.6 : -1) * unit, words, 'middle');

  Explore.define('lookup', {
    start: () => ({ query: [2, 1], keys: [[0, 2], [2, 0], [0, 0]], values: [[0, 1], [1, 0], [0, 0]] }),
    controls: [{ name: 'divide', label: 'divide by $√d_h$ = $√2$', value: true }],
    compute,
    numbers: (state, { scores, weights }) => NAMES.flatMap((name, j) => [[`score of ${name}`, scores[j]], ['weight', short(weights[j])]]),
    describe,
    views: [
      {
        height: 330,
        draw(axes, { query, keys }, { weights }) {
          const view = axes({ x: [-3.75, 3.75], y: [-3.75, 3.75], square: true, xTicks: [-2, 0, 2], xLabel: 'topic', yLabel: 'adjective' });
          view.line([[0, 0], query], 2, 'query $q$ of bank (drag it)');
          keys.forEach((key, j) => view.marks([key], 1, j ? '' : 'keys $k$, as large as the weights', 4 + 11 * Math.sqrt(weights[j])));
          keys.forEach((key, j) => name(view, key, `${NAMES[j]} ${short(weights[j])}`, 0.85));
        },
        handles: state => [
          { at: state.query, min: -FAR, max: FAR, step: 0.1, label: 'query of bank', set: to => { state.query = to; } },
          ...handles(state, 'keys', 'key', FAR)],
      },
      {
        height: 330,
        draw(axes, { values }, { output }) {
          const view = axes({ x: [-1.9, 1.9], y: [-1.9, 1.9], square: true, xTicks: [-1, 0, 1], xLabel: 'water +, money −', yLabel: 'age' });
          view.area(values, 1, 'what averages of the values reach');
          values.forEach((value, j) => view.line([output, value], 5, j ? '' : 'to the values $v$'));
          view.marks([output], 3, 'output $o$', 8);
          values.forEach((value, j) => name(view, value, NAMES[j], 0.45));
        },
        handles: state => handles(state, 'values', 'value', 1.5),
      },
    ],
  });
})();
