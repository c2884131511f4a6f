// Figures that move. This script turns every <div class="explorable" data-explorable="name"> into a box with controls, a
// drawing in SVG and the numbers behind it. What it shows is defined in a file of that name beside this one:
//
//   Explore.define('name', {
//     controls: [                            // what the reader can change; state[name] holds the value
//       { name: 'n', label: 'tokens n', min: 1, max: 12, step: 1, value: 5, read: e => 2 ** e },   // a slider
//       { name: 'skip', label: 'skip connection', value: true },                                   // a box to tick
//       { name: 'seed', label: 'Draw again', value: 1, press: seed => seed + 1 },                  // a button
//     ],
//     start: () => ({ … }),                  // further state, such as what handles move (optional)
//     compute: state => ({ … }),             // the numbers, from nothing but the state
//     numbers: (state, result) => [['‖A‖₂', result.norm], …],        // those shown as text
//     describe: (state, result) => 'what the drawing shows, in a sentence',
//     views: [{ height: 300, draw(axes, state, result) { … } }],     // drawings, side by side where there is room
//   });
//
// The whole drawing is made anew from the state after every change. `book/_tools/web/explorables.mjs` holds what `compute` returns
// against the library. Without this script the div stays empty, and the figure above it is all there is.
window.Explore = (() => {
  const known = {};    // name -> definition
  const shown = {};    // name -> its state, for the tests

  // --- numbers -------------------------------------------------------------------------------------------------------
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

  // A generator of normally distributed numbers that gives the same ones on every machine (mulberry32, Box and Muller).
  function normals(seed) {
    let a = seed | 0;
    const uniform = () => {
      a = (a + 0x6D2B79F5) | 0;
      let t = Math.imul(a ^ (a >>> 15), 1 | a);
      t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
      return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
    };
    return () => Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform());
  }

  // --- linear algebra: matrices are arrays of rows ---------------------------------------------------------------------
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

  // --- drawing -------------------------------------------------------------------------------------------------------
  const SVG = 'http://www.w3.org/2000/svg';
  const MARGIN = { left: 60, right: 14, top: 12, bottom: 42 }, BARE = { left: 8, right: 8, top: 8, bottom: 8 };

  function ticks(low, high, count) {
    const rough = (high - low) / count;
    const decade = 10 ** Math.floor(Math.log10(rough));
    const step = decade * [1, 2, 5, 10].find(factor => factor * decade >= rough);
    const first = Math.ceil(low / step - 1e-9), last = Math.floor(high / step + 1e-9);
    return Array.from({ length: last - first + 1 }, (_, k) => Number(((first + k) * step).toPrecision(12)));
  }

  function decades(low, high, count) {
    const first = Math.ceil(Math.log10(low) - 1e-9), last = Math.floor(Math.log10(high) + 1e-9);
    const step = Math.max(1, Math.ceil((last - first) / count));
    return Array.from({ length: Math.floor((last - first) / step) + 1 }, (_, k) => 10 ** (first + k * step));
  }

  const escape = text => String(text).replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/"/g, '&quot;');
  const place = value => value.toFixed(2);

  // Axes and what is drawn on them. Options: x and y ([low, high]), xLabel, yLabel, logX, logY, xTicks (instead of round
  // ones), square (one scale for both), bare (no ticks). A `kind` from 1 to 5 is a colour with its own dashes and marker.
  class Axes {
    constructor(width, height, options) {
      const margin = options.bare ? BARE : MARGIN;
      Object.assign(this, { width, height, options, margin, shapes: [], legend: [] });
      let [x, y] = [options.x, options.y];
      const inner = [width - margin.left - margin.right, height - margin.top - margin.bottom];
      if (options.square) {   // widen the range of the longer side
        const unit = Math.max((x[1] - x[0]) / inner[0], (y[1] - y[0]) / inner[1]);
        const widen = (range, pixels) => [-1, 1].map(sign => (range[0] + range[1]) / 2 + sign * unit * pixels / 2);
        [x, y] = [widen(x, inner[0]), widen(y, inner[1])];
      }
      const scale = (range, log, start, pixels) => {
        const [low, high] = log ? range.map(Math.log) : range;
        return value => start + ((log ? Math.log(value) : value) - low) / (high - low) * pixels;
      };
      this.X = scale(x, options.logX, margin.left, inner[0]);
      this.Y = scale(y, options.logY, height - margin.bottom, -inner[1]);
      this.data = (left, top) => [   // from pixels back to data; linear axes only
        x[0] + (left - margin.left) / inner[0] * (x[1] - x[0]), y[0] + (height - margin.bottom - top) / inner[1] * (y[1] - y[0])];
      if (!options.bare) this.frame(x, y, inner);
    }

    frame(x, y, inner) {
      const { logX, logY, xTicks, xLabel = '', yLabel = '' } = this.options;
      const right = this.width - MARGIN.right, bottom = this.height - MARGIN.bottom;
      const label = (value, log) => (log && Math.abs(Math.log10(value)) > 3.5 ? power(Math.round(Math.log10(value))) : format(value));
      for (const value of xTicks ?? (logX ? decades : ticks)(...x, inner[0] / 80)) {
        const at = place(this.X(value));
        this.shapes.push(`<line class="grid" x1="${at}" x2="${at}" y1="${MARGIN.top}" y2="${bottom}"/>`,
          `<text x="${at}" y="${bottom + 16}" text-anchor="middle">${label(value, logX)}</text>`);
      }
      for (const value of (logY ? decades : ticks)(...y, inner[1] / 50)) {
        const at = this.Y(value);
        this.shapes.push(`<line class="grid" x1="${MARGIN.left}" x2="${right}" y1="${place(at)}" y2="${place(at)}"/>`,
          `<text x="${MARGIN.left - 6}" y="${place(at + 4)}" text-anchor="end">${label(value, logY)}</text>`);
      }
      this.shapes.push(`<path class="axis" d="M${MARGIN.left} ${MARGIN.top}V${bottom}H${right}"/>`,
        `<text x="${(MARGIN.left + right) / 2}" y="${this.height - 6}" text-anchor="middle">${escape(xLabel)}</text>`,
        `<text transform="translate(12 ${(MARGIN.top + bottom) / 2}) rotate(-90)" text-anchor="middle">${escape(yLabel)}</text>`);
    }

    name(kind, shape, label) { if (label) this.legend.push({ kind, shape, label }); }

    path(points) { return points.map(([x, y], i) => `${i ? 'L' : 'M'}${place(this.X(x))} ${place(this.Y(y))}`).join(''); }

    line(points, kind, label) {
      this.shapes.push(`<path class="line kind-${kind}" d="${this.path(points)}"/>`);
      this.name(kind, 'line', label);
    }

    level(y, kind, label) { this.line([this.options.x[0], this.options.x[1]].map(x => [x, y]), kind, label); }

    area(points, kind, label) {
      this.shapes.push(`<path class="area kind-${kind}" d="${this.path(points)}Z"/>`);
      this.name(kind, 'area', label);
    }

    stem(x, y, kind) { this.line([[x, 0], [x, y]], kind); }

    bar(x, y, width, kind, label) {
      this.area([[x - width / 2, 0], [x - width / 2, y], [x + width / 2, y], [x + width / 2, 0]], kind, label);
    }

    marks(points, kind, label, size = 4) {
      const drawn = {
        1: (x, y) => `<circle cx="${x}" cy="${y}" r="${size}"/>`,
        2: (x, y) => `<rect x="${x - size}" y="${y - size}" width="${2 * size}" height="${2 * size}"/>`,
        3: (x, y) => `<path d="M${x} ${y - size}l${size} ${2 * size}h${-2 * size}z"/>`,
        4: (x, y) => `<path d="M${x} ${y - size}l${size} ${size}l${-size} ${size}l${-size} ${-size}z"/>`,
        5: (x, y) => `<path d="M${x} ${y + size}l${size} ${-2 * size}h${-2 * size}z"/>`,
      }[kind];
      this.shapes.push(`<g class="mark kind-${kind}">${points.map(([x, y]) => drawn(Number(place(this.X(x))), Number(place(this.Y(y))))).join('')}</g>`);
      this.name(kind, 'mark', label);
    }

    // A matrix with entries between 0 and `top`, dark where they are large; row 1 is above.
    matrix(A, top = 1) {
      const width = (this.X(1) - this.X(0)) / A[0].length, height = (this.Y(0) - this.Y(1)) / A.length;
      const cells = A.flatMap((row, i) => row.map((value, j) => `<rect x="${place(this.X(0) + j * width)}" y="${place(this.Y(1) + i * height)}"`
        + ` width="${place(width)}" height="${place(height)}" fill-opacity="${Math.min(1, value / top).toFixed(3)}"/>`));
      this.shapes.push(`<g class="matrix">${cells.join('')}</g>`,
        `<rect class="outline" x="${place(this.X(0))}" y="${place(this.Y(1))}" width="${place(width * A[0].length)}" height="${place(height * A.length)}"/>`);
    }

    text(x, y, words) {
      this.shapes.push(`<text x="${place(this.X(x))}" y="${place(this.Y(y))}">${escape(words)}</text>`);
    }

    caption(words) { this.legend.push({ label: words }); }   // stands below the drawing, in the legend
  }

  const sample = ({ kind, shape }) => {   // of a line, a mark or an area, for the legend; a caption has none
    if (!shape) return '';
    const axes = new Axes(28, 14, { x: [0, 1], y: [0, 1], bare: true });
    [axes.X, axes.Y] = [x => 2 + 24 * x, y => 13 - 12 * y];
    if (shape === 'line') axes.line([[0, 0.5], [1, 0.5]], kind);
    if (shape === 'mark') axes.marks([[0.5, 0.5]], kind);
    if (shape === 'area') axes.area([[0.2, 0], [0.2, 1], [0.8, 1], [0.8, 0]], kind);
    return `<svg width="28" height="14" aria-hidden="true">${axes.shapes.join('')}</svg>`;
  };

  // --- the box -------------------------------------------------------------------------------------------------------
  const element = (tag, properties = {}, ...children) => {
    const made = Object.assign(document.createElement(tag), properties);
    made.append(...children);
    return made;
  };

  function slider(control, state, changed) {
    const { name, label, min, max, step, value, read = raw => raw, show = format } = control;
    const input = element('input', { type: 'range', min, max, step, name });
    const output = element('output');
    const update = () => {
      state[name] = read(Number(input.value));
      output.value = show(state[name]);
      input.setAttribute('aria-valuetext', output.value);
    };
    input.addEventListener('input', () => { update(); changed(); });
    const reset = () => { input.value = value; update(); };
    reset();
    return [element('label', {}, element('span', {}, `${label}: `, output), input), reset];
  }

  function tick({ name, label, value }, state, changed) {
    const input = element('input', { type: 'checkbox', name });
    input.addEventListener('input', () => { state[name] = input.checked; changed(); });
    const reset = () => { input.checked = state[name] = value; };
    reset();
    return [element('label', { className: 'tick' }, input, ` ${label}`), reset];
  }

  function button({ name, label, value, press }, state, changed) {
    const made = element('button', { type: 'button', name }, label);
    made.addEventListener('click', () => { state[name] = press(state[name]); changed(); });
    const reset = () => { state[name] = value; };
    reset();
    return [made, reset];
  }

  const control = definition => (definition.press ? button : typeof definition.value === 'boolean' ? tick : slider);

  // A point of a view that can be moved up and down, with the pointer or the arrow keys. It outlives the drawings, so that
  // it keeps the focus and the pointer.
  function makeHandle(svg, layer, changed) {
    const knob = document.createElementNS(SVG, 'circle');
    for (const [key, value] of Object.entries({ r: 9, class: 'handle', tabindex: 0, role: 'slider', 'aria-orientation': 'vertical' })) knob.setAttribute(key, value);
    let current;   // { axes, handle }, set at every drawing
    const set = value => {
      const { min, max, step } = current.handle;
      current.handle.set(Number(Math.min(max, Math.max(min, Math.round(value / step) * step)).toPrecision(12)));
      changed();
    };
    knob.addEventListener('pointerdown', event => { knob.setPointerCapture(event.pointerId); knob.focus(); event.preventDefault(); });
    knob.addEventListener('pointermove', event => {
      if (!knob.hasPointerCapture(event.pointerId)) return;
      set(current.axes.data(0, event.clientY - svg.getBoundingClientRect().top)[1]);
    });
    knob.addEventListener('keydown', event => {
      const { value, min, max, step } = current.handle;
      const to = { ArrowUp: value + step, ArrowRight: value + step, ArrowDown: value - step, ArrowLeft: value - step, PageUp: value + 10 * step, PageDown: value - 10 * step, Home: min, End: max }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      set(to);
    });
    layer.append(knob);
    return (axes, handle) => {
      current = { axes, handle };
      knob.setAttribute('cx', place(axes.X(handle.x)));
      knob.setAttribute('cy', place(axes.Y(handle.value)));
      for (const [key, value] of Object.entries({ label: handle.label, valuemin: handle.min, valuemax: handle.max, valuenow: handle.value })) knob.setAttribute(`aria-${key}`, value);
    };
  }

  // Dragging over a view moves controls: view.drag(state, right) gives their new values from the state in which the
  // drag began and the pixels to the right since. A finger that goes up or down scrolls the page (touch-action).
  function makeDraggable(svg, view, state, move) {
    let began;
    svg.classList.add('draggable');
    svg.addEventListener('pointerdown', event => { svg.setPointerCapture(event.pointerId); began = { x: event.clientX, state: { ...state } }; });
    svg.addEventListener('pointermove', event => {
      if (svg.hasPointerCapture(event.pointerId)) move(view.drag(began.state, event.clientX - began.x));
    });
  }

  function makeView(view, state, move, changed) {
    const svg = document.createElementNS(SVG, 'svg');
    const drawing = document.createElementNS(SVG, 'g'), layer = document.createElementNS(SVG, 'g');
    drawing.setAttribute('aria-hidden', 'true');   // the sentence and the numbers below say it
    svg.append(drawing, layer);
    const legend = element('ul', { className: 'legend' });
    const box = element('div', { className: 'view' }, svg, legend);
    const knobs = [];
    if (view.drag) makeDraggable(svg, view, state, move);
    const redraw = (state, result) => {
      const width = box.clientWidth, height = view.height ?? 300;
      svg.setAttribute('width', width);
      svg.setAttribute('height', height);
      let axes;
      view.draw(options => (axes = new Axes(width, height, options)), state, result);
      drawing.innerHTML = axes.shapes.join('');
      legend.innerHTML = axes.legend.map(entry => `<li>${sample(entry)} ${escape(entry.label)}</li>`).join('');
      const handles = view.handles?.(state) ?? [];
      while (knobs.length > handles.length) { knobs.pop(); layer.lastChild.remove(); }
      handles.forEach((handle, i) => {
        if (i === knobs.length) knobs.push(makeHandle(svg, layer, changed));
        knobs[i](axes, handle);
      });
    };
    return { box, redraw };
  }

  function show(box, name) {
    const { controls, start = () => ({}), compute, numbers, describe, views } = known[name];
    const state = start();
    let waiting = false;
    let pause;
    const changed = () => {
      clearTimeout(pause);
      pause = setTimeout(() => { spoken.textContent = words.textContent; }, 800);
      if (waiting) return;
      waiting = true;
      requestAnimationFrame(() => { waiting = false; redraw(); });
    };
    const made = controls.map(definition => control(definition)(definition, state, changed));
    const again = element('button', { type: 'button' }, 'Reset');
    again.addEventListener('click', () => { made.forEach(([, reset]) => reset()); Object.assign(state, start()); changed(); });
    const isButton = part => part.tagName === 'BUTTON', parts = made.map(([part]) => part);
    const form = element('form', { className: 'controls' }, ...parts.filter(part => !isButton(part)),
      element('div', { className: 'buttons' }, ...parts.filter(isButton), again));
    form.addEventListener('submit', event => event.preventDefault());
    const move = values => {
      for (const [name, value] of Object.entries(values)) {
        form.elements[name].value = value;
        form.elements[name].dispatchEvent(new Event('input'));
      }
    };
    const drawn = views.map(view => makeView(view, state, move, changed));
    const table = element('dl', { className: 'numbers' });
    const words = element('p', { className: 'says' });
    const spoken = element('p', { className: 'visually-hidden', role: 'status' });   // read out once the reader pauses
    const redraw = () => {
      const result = compute(state);
      for (const { redraw } of drawn) redraw(state, result);
      table.replaceChildren(...numbers(state, result).map(([label, value]) => element('div', {}, element('dt', {}, label), element('dd', {}, format(value)))));
      words.textContent = describe(state, result);
    };
    const title = element('p', { className: 'title' }, element('strong', {}, 'Move it. '), box.dataset.title);
    box.append(title, form,
      element('div', { className: 'views' }, ...drawn.map(view => view.box)), words, table, spoken);
    shown[name] = state;
    new ResizeObserver(redraw).observe(title);   // now, and when the width changes; a drawing does not change the title
  }

  document.addEventListener('DOMContentLoaded', () => {
    for (const box of document.querySelectorAll('.explorable'))
      queueMicrotask(() => show(box, box.dataset.explorable));   // each by itself: an error in one leaves the others alone
  });

  return { define: (name, definition) => { known[name] = definition; }, known, shown, format, weight, normals, softmax, dot, length, times, product, spectralNorm, matrixNorm, queriesAndKeys, attention };
})();
