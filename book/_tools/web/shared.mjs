// What the checks and the printer of the PDF share: the packages, which lie in a cache folder (PACKAGES) rather than beside these
// scripts, a server of a folder, a browser (CHROME), and an eye on what goes wrong while it reads.
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { createRequire } from 'node:module';

export const load = createRequire(path.resolve(process.env.PACKAGES) + '/');

const TYPES = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml', '.json': 'application/json' };

// Serve a folder on this machine; `base` is its address.
export async function serve(folder) {
  const server = http.createServer((request, response) => {
    const file = path.join(folder, decodeURIComponent(new URL(request.url, 'http://book').pathname));
    if (!fs.existsSync(file) || !fs.statSync(file).isFile()) return response.writeHead(404).end();
    response.writeHead(200, { 'content-type': TYPES[path.extname(file)] ?? 'application/octet-stream' });
    response.end(fs.readFileSync(file));
  });
  await new Promise(resolve => server.listen(0, '127.0.0.1', resolve));
  return { base: `http://127.0.0.1:${server.address().port}/`, close: () => server.close() };
}

export const launchOptions = {
  executablePath: process.env.CHROME,
  args: [...(process.getuid?.() === 0 ? ['--no-sandbox'] : []), '--disable-gpu', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
};

// The complaints, which grow while pages of the context are open, about requests that leave `base` or fail, and about scripts.
export function watch(context, base) {
  const found = new Set();
  const short = address => address.replace(base, '/');
  context.on('request', request => { if (!/^(data|blob):/.test(request.url()) && !request.url().startsWith(base)) found.add(`request to another place: ${request.url()}`); });
  context.on('requestfailed', request => {
    const { errorText } = request.failure();
    // Two are no fault of the book: a browser without script refuses one (csp), and a page that is left gives up what it still loads.
    if (!['csp', 'net::ERR_ABORTED'].includes(errorText)) found.add(`not loaded: ${short(request.url())} (${errorText})`);
  });
  context.on('response', response => { if (response.status() >= 400) found.add(`${response.status()} for ${short(response.url())}`); });
  context.on('weberror', error => found.add(`script error: ${error.error().message}`));
  return found;
}
