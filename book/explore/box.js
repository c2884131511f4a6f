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
// In every text a formula stands between dollars (text.js). The state stands in the address, so that a link shows it again.
//
// The whole drawing is made anew from the state after every change. The browser's check holds what `compute` returns against the
// reference of that name beside this one, which uses the library. Without this script the div stays empty, and the figure above it is all there is.
Object.assign(Explore, (() => {
  const { format, Axes, sample, place, html, plain } = Explore;
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
      output.innerHTML = html(show(state[name]));
      input.setAttribute('aria-valuetext', output.textContent);
    };
    input.addEventListener('input', () => { update(); changed(); });
    const set = raw => { input.value = raw; update(); };
    const named = element('span', { innerHTML: `${html(label)}: ` });
    named.append(output);
    return { part: element('label', {}, named, input), name, initial: value, get: () => Number(input.value), set };
  }

  function tick({ name, label, value }, state, changed) {
    const input = element('input', { type: 'checkbox', name });
    input.addEventListener('input', () => { state[name] = input.checked; changed(); });
    const set = on => { input.checked = state[name] = Boolean(on); };
    const part = element('label', { className: 'tick' }, input, element('span', { innerHTML: html(label) }));
    return { part, name, initial: Number(value), get: () => Number(state[name]), set };
  }

  function button({ name, label, value, press }, state, changed) {
    const part = element('button', { type: 'button', name, innerHTML: html(label) });
    part.addEventListener('click', () => { state[name] = press(state[name]); changed(); });
    const set = to => { state[name] = Number.isSafeInteger(to) && to > 0 ? to : value; };
    return { part, name, initial: value, get: () => state[name], set };
  }

  const control = definition => (definition.press ? button : typeof definition.value === 'boolean' ? tick : slider);

  // Further state, such as where handles are: numbers, or lists of them, which the address holds one after the other.
  const numbersIn = value => (Array.isArray(value) ? value.flatMap(numbersIn) : [value]);
  const shaped = (like, numbers) => (Array.isArray(like) ? like.map(part => shaped(part, numbers)) : numbers.shift());
  const isNumbers = value => numbersIn(value).every(Number.isFinite);
  const free = (initial, state) => Object.keys(initial).filter(name => isNumbers(initial[name])).map(name => ({
    name, initial: numbersIn(initial[name]).join(), get: () => numbersIn(state[name]).join(),
    set: text => {
      const numbers = String(text).split(',').map(Number);
      if (numbers.length === numbersIn(initial[name]).length && isNumbers(numbers)) state[name] = shaped(initial[name], numbers);
    },
  }));

  // The address: after #, for each figure that is not as it was at first, its box and what differs, as in
  // #move-fig-one:n=3:own=1/move-fig-two:n=5. It is written when nothing has moved for a while, for browsers limit how often.
  const inAddress = () => new Map(location.hash.slice(1).split('/').filter(part => /^move-[^:]+:/.test(part)).map(part => {
    const [id, ...settings] = part.split(':');
    return [id, new Map(settings.map(setting => setting.split('=')).filter(([, value]) => value))];
  }));
  function toAddress(id, settings) {
    const all = inAddress(), before = all.size;
    all.delete(id);
    if (settings.length) all.set(id, new Map(settings));
    if (!all.size && !before) return;   // leave an address that is another's
    const hash = [...all].map(([id, settings]) => [id, ...[...settings].map(([name, value]) => `${name}=${value}`)].join(':')).join('/');
    history.replaceState(history.state, '', hash ? `#${hash}` : location.href.split('#')[0]);
  }

  const ARROWS = { ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowLeft: [-1, 0], ArrowDown: [0, -1] };
  const setAll = (node, attributes) => { for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value); };

  // A point of a view that can be moved with the pointer or the arrow keys: up and down, or, where it has `at`, anywhere in
  // the plane. It outlives the drawings, so that it keeps the focus and the pointer.
  const nearest = ({ min, max, step }, value) => (Array.isArray(value) ? value.map(x => nearest({ min, max, step }, x))
    : Number(Math.min(max, Math.max(min, Math.round(value / step) * step)).toPrecision(12)));
  function makeHandle(svg, layer, changed) {
    const knob = document.createElementNS(SVG, 'circle');
    let current;   // { axes, handle }, set at every drawing
    const set = value => { current.handle.set(nearest(current.handle, value)); changed(); };
    knob.addEventListener('pointerdown', event => { knob.setPointerCapture(event.pointerId); knob.focus(); event.preventDefault(); });
    knob.addEventListener('pointermove', event => {
      if (!knob.hasPointerCapture(event.pointerId)) return;
      const { left, top } = svg.getBoundingClientRect(), at = current.axes.data(event.clientX - left, event.clientY - top);
      set(current.handle.at ? at : at[1]);
    });
    knob.addEventListener('keydown', event => {
      const { at, value, min, max, step } = current.handle, towards = ARROWS[event.key];
      const to = at ? towards && at.map((x, a) => x + step * towards[a]) : { ArrowUp: value + step, ArrowRight: value + step, ArrowDown: value - step, ArrowLeft: value - step, PageUp: value + 10 * step, PageDown: value - 10 * step, Home: min, End: max }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      set(to);
    });
    layer.append(knob);
    return (axes, handle) => {
      current = { axes, handle };
      const [x, y] = handle.at ?? [handle.x, handle.value], said = handle.at ? `(${handle.at.map(format).join(', ')})` : format(y);
      setAll(knob, {
        r: 9, class: `handle kind-${handle.kind ?? 2}${handle.at ? ' plane' : ''}`, cx: place(axes.X(x)), cy: place(axes.Y(y)), tabindex: 0, role: 'slider',
        'aria-label': plain(handle.label), 'aria-valuemin': handle.min, 'aria-valuemax': handle.max, 'aria-valuenow': handle.at ? x : y, 'aria-valuetext': said });
      if (!handle.at) knob.setAttribute('aria-orientation', 'vertical');
    };
  }

  // Dragging over a view moves controls: view.drag(state, right) gives their new values from the state in which the
  // drag began and the pixels to the right since. The arrow keys do the same. A finger that goes up or down scrolls the page
  // (touch-action). What it says of itself is what its control says.
  function makeDraggable(svg, view, state, move, input) {
    let began;
    svg.classList.add('draggable');
    setAll(svg, { tabindex: 0, role: 'slider' });
    svg.addEventListener('keydown', event => {
      if (!ARROWS[event.key]) return;
      event.preventDefault();
      move(view.drag({ ...state }, 8 * (ARROWS[event.key][0] + ARROWS[event.key][1])));
    });
    svg.addEventListener('pointerdown', event => { svg.setPointerCapture(event.pointerId); began = { x: event.clientX, state: { ...state } }; });
    svg.addEventListener('pointermove', event => {
      if (svg.hasPointerCapture(event.pointerId)) move(view.drag(began.state, event.clientX - began.x));
    });
    return () => setAll(svg, {
      'aria-label': `${input().name}, by dragging`, 'aria-valuemin': input().min, 'aria-valuemax': input().max, 'aria-valuenow': input().value,
      'aria-valuetext': input().getAttribute('aria-valuetext') });
  }

  function makeView(view, state, move, changed, input) {
    const svg = document.createElementNS(SVG, 'svg');
    const drawing = document.createElementNS(SVG, 'g'), layer = document.createElementNS(SVG, 'g');
    drawing.setAttribute('aria-hidden', 'true');   // the sentence and the numbers below say it
    svg.append(drawing, layer);
    const legend = element('ul', { className: 'legend' });
    const box = element('div', { className: 'view' }, svg, legend);
    const knobs = [];
    const tell = view.drag && makeDraggable(svg, view, state, move, () => input(Object.keys(view.drag(state, 0))[0]));
    const redraw = (state, result) => {
      const width = box.clientWidth, height = view.height ?? 300;
      svg.setAttribute('width', width);
      svg.setAttribute('height', height);
      let axes;
      view.draw(options => (axes = new Axes(width, height, options)), state, result);
      drawing.innerHTML = axes.shapes.join('');
      legend.innerHTML = axes.legend.map(entry => `<li>${sample(entry)} <span>${html(entry.label)}</span></li>`).join('');
      tell?.();
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
      pause = setTimeout(() => {
        spoken.textContent = words.textContent;
        toAddress(box.id, kept.filter(one => String(one.get()) !== String(one.initial)).map(one => [one.name, one.get()]));
      }, 800);
      if (waiting) return;
      waiting = true;
      requestAnimationFrame(() => { waiting = false; redraw(); });
    };
    const made = controls.map(definition => control(definition)(definition, state, changed));
    const again = element('button', { type: 'button' }, 'Reset');
    const reset = () => { Object.assign(state, begin()); made.forEach(one => one.set(one.initial)); };
    again.addEventListener('click', () => { reset(); changed(); });
    const isButton = part => part.tagName === 'BUTTON', parts = made.map(({ part }) => part);
    const kept = [...made, ...free(begin(), state)];
    // What cannot be is left out: a slider keeps its limits, a handle is moved within its own.
    const restore = () => {
      reset();
      for (const [name, value] of inAddress().get(box.id) ?? []) {
        const one = kept.find(one => one.name === name);
        if (one && (one.part ? Number.isFinite(Number(value)) : true)) one.set(one.part ? Number(value) : value);
      }
      for (const view of views) for (const handle of view.handles?.(state) ?? []) handle.set(nearest(handle, handle.at ?? handle.value));
    };
    restore();
    window.addEventListener('hashchange', () => { if (inAddress().has(box.id)) { restore(); changed(); bring(box); } });
    const form = element('form', { className: 'controls' }, ...parts.filter(part => !isButton(part)),
      element('div', { className: 'buttons' }, ...parts.filter(isButton), again));
    form.addEventListener('submit', event => event.preventDefault());
    const move = values => {
      for (const [name, value] of Object.entries(values)) {
        form.elements[name].value = value;
        form.elements[name].dispatchEvent(new Event('input'));
      }
    };
    const drawn = views.map(view => makeView(view, state, move, changed, name => form.elements[name]));
    const table = element('dl', { className: 'numbers' });
    const words = element('p', { className: 'says' });
    const spoken = element('p', { className: 'visually-hidden', role: 'status' });   // read out once the reader pauses
    const redraw = () => {
      const result = compute(state);
      for (const { redraw } of drawn) redraw(state, result);
      table.replaceChildren(...numbers(state, result).map(([label, value]) => element('div', {}, element('dt', { innerHTML: html(label) }), element('dd', { innerHTML: html(format(value)) }))));
      words.innerHTML = html(describe(state, result));
    };
    const title = element('p', { className: 'title' }, element('strong', {}, 'Move it. '), box.dataset.title);
    box.append(title, form,
      element('div', { className: 'views' }, ...drawn.map(view => view.box)), words, table, spoken);
    shown[name] = state;
    new ResizeObserver(redraw).observe(title);   // now, and when the width changes; a drawing does not change the title
    if (inAddress().has(box.id)) window.addEventListener('load', () => bring(box));
  }

  // Scroll to the first figure of the address.
  function bring(box) {
    if (inAddress().keys().next().value === box.id) box.scrollIntoView({ behavior: 'instant' });
  }

  document.addEventListener('DOMContentLoaded', () => {
    for (const box of document.querySelectorAll('.explorable'))
      queueMicrotask(() => show(box, box.dataset.explorable));   // each by itself: an error in one leaves the others alone
  });

  return { define: (name, definition) => { known[name] = definition; }, known, shown };
})());
