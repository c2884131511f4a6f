// What the checks share: the packages, which lie in a cache folder rather than beside these scripts, and the list of pages.
import fs from 'node:fs';
import path from 'node:path';
import { createRequire } from 'node:module';

export const requireFrom = folder => createRequire(path.resolve(folder) + '/');

// The pages of the built book, relative to its folder, without Sphinx's own folders (_static, _sources …).
export function pages(html, folder = html) {
  return fs.readdirSync(folder, { withFileTypes: true }).flatMap(entry => {
    const file = path.join(folder, entry.name);
    if (entry.isDirectory()) return entry.name.startsWith('_') ? [] : pages(html, file);
    return entry.name.endsWith('.html') ? [path.relative(html, file)] : [];
  }).sort();
}
