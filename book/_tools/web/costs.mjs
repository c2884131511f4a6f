// What the checks took, by file and by their steps, in seconds of the clock, once all have run.
import path from 'node:path';

export default class Costs {
  spent = {};

  add(what, milliseconds) {
    const { count, seconds } = this.spent[what] ?? { count: 0, seconds: 0 };
    this.spent[what] = { count: count + 1, seconds: seconds + milliseconds / 1000 };
  }

  onTestEnd({ location }, { duration, steps }) {
    const file = path.basename(location.file, '.spec.mjs');
    this.add(file, duration);
    for (const { category, title, duration } of steps) if (category === 'test.step') this.add(`${file}: ${title}`, duration);
  }

  onEnd({ duration }) {
    console.log('\n  seconds   times');
    for (const [what, { count, seconds }] of Object.entries(this.spent).sort()) console.log(`${seconds.toFixed(1).padStart(9)} ${String(count).padStart(7)}   ${what}`);
    console.log(`${(duration / 1000).toFixed(1).padStart(9)}           by the clock, with ${this.workers} at once`);
  }

  onBegin({ workers }) { this.workers = workers; }
}
