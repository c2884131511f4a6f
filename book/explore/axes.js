// The drawings of the figures that move: axes, and lines, areas, marks and matrices on them, as SVG.
Object.assign(Explore, (() => {
  const { format, power, svg } = Explore;
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
        `<text x="${(MARGIN.left + right) / 2}" y="${this.height - 6}" text-anchor="middle">${svg(xLabel)}</text>`,
        `<text transform="translate(12 ${(MARGIN.top + bottom) / 2}) rotate(-90)" text-anchor="middle">${svg(yLabel)}</text>`);
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

    text(x, y, words, anchor = 'start') {
      this.shapes.push(`<text x="${place(this.X(x))}" y="${place(this.Y(y))}" text-anchor="${anchor}">${svg(words)}</text>`);
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

  return { Axes, sample, place };
})());
