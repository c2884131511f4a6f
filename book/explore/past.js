// What SmolLM2 pays past the length of its training, with each remedy, by position: the losses of six windows of books, as stored.
(() => {
  const BINS = 24, BIN = 512, TRAINED = 16, FAR = 20, SHIFTED = 8;   // SHIFTED: the first bin of the control
  const END = (BINS + 2) * BIN;   // room for the last number of the axis
  const REMEDIES = ['none', 'interpolation', 'base', 'yarn', 'window', 'window+first'];
  const NAMES = ['none', 'all frequencies / 1.5', 'another base', 'YaRN', 'a window', 'a window, and the first token'];
  const WINDOWS = ['mean of six', 'first book, 1', 'first book, 2', 'second book, 1', 'second book, 2', 'third book, 1', 'third book, 2'];

  const mean = values => values.reduce((sum, value) => sum + value, 0) / values.length;
  const means = rows => rows[0].map((_, k) => mean(rows.map(row => row[k])));

  function compute({ stored, remedy, window }) {
    const of = name => means(window ? [stored[name][window - 1]] : stored[name]);
    const control = [...of('none').slice(0, TRAINED), ...of('shifted').slice(TRAINED - SHIFTED)];
    const loss = of(REMEDIES[remedy]), more = loss.map((value, k) => value - control[k]);
    return { control, loss, more, within: mean(more.slice(0, TRAINED)), next: mean(more.slice(TRAINED, FAR)), far: mean(more.slice(FAR)) };
  }

  const places = values => values.map((value, k) => [(k + 0.5) * BIN, value]);
  const signed = value => `${value < 0 ? '−' : ''}${Math.abs(value).toFixed(2)}`;   // the losses are of few tokens

  Explore.define('past', {
    start: stored => ({ stored }),
    controls: [
      { name: 'remedy', label: 'remedy', min: 0, max: REMEDIES.length - 1, step: 1, value: 0, show: k => NAMES[k] },
      { name: 'window', label: 'text', min: 0, max: WINDOWS.length - 1, step: 1, value: 0, show: k => WINDOWS[k] },
    ],
    compute,
    numbers: (state, { within, next, far }) => [
      ['nats more, up to 8,191', signed(within)], ['8,192 to 10,239', signed(next)], ['10,240 to 12,287', signed(far)]],
    describe: ({ remedy }, { within, far }) =>
      `${remedy ? `With the remedy “${NAMES[remedy]}”,` : 'As it is,'} the model pays ${signed(within)} nats more than it is used to within its trained length`
      + ` and ${signed(far)} more at the far end of the text.`,
    views: [
      {
        draw(axes, state, { more }) {
          const view = axes({ x: [0, END], y: [-0.1, 1.3], xTicks: [0, 4096, 8192, 12288], xLabel: 'position', yLabel: 'nats more' });
          view.line([[TRAINED * BIN, -0.1], [TRAINED * BIN, 1.3]], 4, 'trained length');
          view.line(places(more), 1, 'with the remedy');
          view.marks(places(more), 1, '', 3);
        },
      },
      {
        draw(axes, state, { loss, control }) {
          const view = axes({ x: [0, END], y: [0, 6], xTicks: [0, 4096, 8192, 12288], xLabel: 'position', yLabel: 'loss, nats' });
          view.line(places(control), 4, 'within the training');
          view.line(places(loss), 1, 'with the remedy');
        },
      },
    ],
  });
})();
