// Figures that move. This script turns every <div class="explorable" data-explorable="name"> into a box with controls, a
// drawing in SVG (axes.js) and the numbers behind it (numbers.js). What it shows is defined in a file of that name beside
// this one:
//
//   Explore.define('name', {
//     controls: [                            // what the reader can change; state[name] holds the value
//       { name: 'n', label: 'tokens n', min: 1, max: 12, step: 1, value: 5, read: e => 2 ** e },   // a slider
//       { name: 'skip', label: 'skip connection', value: true },                                   // a box to tick
//       { name: 'seed', label: 'Draw again', value: 1, press: seed => seed + 1 },                  // a button
//     ],
//     start: stored => ({ … }),              // further state, such as what handles move (optional); `stored` is what the
//                                            // file of this name with the ending .json has, where there is one
//     compute: state => ({ … }),             // the numbers, from nothing but the state
//     numbers: (state, result) => [['‖A‖₂', result.norm], …],        // those shown as text
//     describe: (state, result) => 'what the drawing shows, in a sentence',
//     views: [{ height: 300, draw(axes, state, result) { … } }],     // drawings, side by side where there is room;
//   });                                                              // `handles` and `drag`, below, let one be moved
//
// The whole drawing is made anew from the state after every change. The browser's check holds what `compute` returns against the
// reference of that name beside this one, which uses the library. Without this script the div stays empty, and the figure above it is all there is.
Object.assign(Explore, (() => {
  const { format, Axes, sample, escape, place } = Explore;
  const SVG = 'http://www.w3.org/2000/svg';
  const known = {};    // name -> definition
  const shown = {};    // name -> its state, for the tests

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
    const begin = () => start(box.dataset.stored && JSON.parse(box.dataset.stored));
    const state = begin();
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
    again.addEventListener('click', () => { made.forEach(([, reset]) => reset()); Object.assign(state, begin()); changed(); });
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

  return { define: (name, definition) => { known[name] = definition; }, known, shown };
})());
