// The reader's editions in JupyterLab, with a fresh profile and before anything is trusted: pictures are seen, nothing of the
// source's markup is, solutions are closed, and the first screen has the title, the answer and the picture that shows it.
import fs from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { spawn } from 'node:child_process';
import { expect, html, test as base } from './book.mjs';

const free = () => new Promise(resolve => {
  const server = net.createServer().listen(0, '127.0.0.1', () => { const { port } = server.address(); server.close(() => resolve(port)); });
});

const test = base.extend({
  lab: [async ({}, use) => {
    const home = fs.mkdtempSync(path.join(os.tmpdir(), 'lab-')), port = await free();
    const own = Object.fromEntries(['CONFIG', 'DATA', 'RUNTIME'].map(name => [`JUPYTER_${name}_DIR`, path.join(home, name)]));
    const options = ['--no-browser', '--allow-root', `--port=${port}`, '--IdentityProvider.token='];
    const server = spawn(process.env.PY, ['book/_tools/lab.py', html, process.env.JUPYTER, ...options], { env: { ...process.env, ...own, HOME: home }, stdio: 'ignore' });
    const address = `http://127.0.0.1:${port}/`;
    for (let k = 0; k < 120; k++) {
      if (await fetch(`${address}lab`).then(reply => reply.ok, () => false)) break;
      await new Promise(resolve => setTimeout(resolve, 500));
    }
    await use(address);
    server.kill();
    fs.rmSync(home, { recursive: true, force: true });
  }, { scope: 'worker', timeout: 120_000 }],
  baseURL: async ({ lab }, use) => use(lab),
});

for (const name of ['attention/attention', 'spectrum/norm-bounds', 'scale/kv-cache'])
  test(`${name} in JupyterLab`, async ({ page }) => {
    await page.setViewportSize({ width: 1440, height: 900 });
    await page.goto(`lab/tree/lab/${name}.ipynb?reset`);
    const picture = page.locator('.jp-OutputArea-output img').first();
    await expect(picture).toBeVisible({ timeout: 60_000 });
    const top = await picture.evaluate(element => element.getBoundingClientRect().top);
    expect.soft(top, 'the picture begins on the first screen').toBeLessThan(700);
    await expect.soft(page.locator('.jp-Notebook h1')).toBeVisible();
    await expect.soft(page.locator('.jp-RenderedMarkdown strong', { hasText: 'In short.' }).first()).toBeVisible();
    await expect.soft(page.getByText('Would you like to get notified'), 'nothing asks to phone home').toHaveCount(0);
    const stored = JSON.parse(fs.readFileSync(path.join(html, 'notebooks', `${name}.ipynb`), 'utf8')).cells;
    const pictures = stored.flatMap(cell => cell.outputs ?? []).filter(output => output.data?.['image/png']).length;
    const seen = new Set();
    let text = '', open = 0;
    for (let end = false; !end;) {   // it shows only the cells that are near
      const now = await page.evaluate(() => ({
        images: [...document.querySelectorAll('.jp-OutputArea-output img')].filter(image => image.naturalWidth).map(image => image.src.length),
        text: document.querySelector('.jp-Notebook').innerText,
        open: document.querySelectorAll('.jp-Notebook details[open]').length,
      }));
      now.images.forEach(image => seen.add(image));
      text += now.text;
      open += now.open;
      end = await page.evaluate(() => {
        const view = document.querySelector('.jp-WindowedPanel-outer'), before = view.scrollTop;
        view.scrollBy(0, view.clientHeight / 2);
        return view.scrollTop === before;
      });
      await page.waitForTimeout(250);
    }
    expect.soft(seen.size, 'pictures').toBe(pictures);
    expect.soft(text).not.toMatch(/:::|\{prf|\{cite|\{numref|:label:|digest [0-9a-f]{8}/);
    expect.soft(open, 'hints and solutions that are open').toBe(0);
  });
