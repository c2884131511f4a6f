// How the checks run. LABELS writes what the figures that move say, to be compared from then on. SHOTS names a folder for screenshots: taken at the same time they can get mixed up.
import path from 'node:path';
import { launchOptions } from './shared.mjs';

export default {
  projects: [
    { name: 'web', testIgnore: ['archive.spec.mjs', 'lab.spec.mjs'] },
    { name: 'paper', testMatch: ['archive.spec.mjs', 'pages.spec.mjs'] },   // the pages, too, that link the PDF and the archive
    { name: 'lab', testMatch: 'lab.spec.mjs' },
  ],
  outputDir: path.resolve(process.env.PACKAGES, 'results'),
  fullyParallel: true,
  workers: process.env.SHOTS ? 1 : '100%',
  timeout: 300_000,   // a machine may be busy
  expect: { timeout: 10_000 },
  snapshotPathTemplate: '../../explore/labels/{arg}{ext}',   // the one kind there is
  updateSnapshots: process.env.LABELS ? 'all' : 'none',
  reporter: [['dot'], ['./costs.mjs']],
  // A picture of the whole page before and after every step, as a trace has by default, takes longer than the checks.
  use: { trace: { mode: 'retain-on-failure', snapshots: false }, launchOptions },
};
