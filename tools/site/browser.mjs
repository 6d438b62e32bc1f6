// The site in a real browser: node tools/site/browser.mjs build/site [one page of how many] [screenshots]
//
// Opens pages in a headless Chromium by playwright-core, from a server on this machine, and checks that none logs an
// error or asks for anything from elsewhere, that nothing is wider than a phone, and that the search finds conv1d. All but
// the reference is opened once more without JavaScript: the text must be there.
import { createServer } from "node:http";
import { existsSync, mkdirSync, readFileSync, readdirSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { extname, join, relative } from "node:path";

const [site, part = "1", pictures] = process.argv.slice(2);
const { chromium } = createRequire(join(process.cwd(), "x.js"))("playwright-core");
const KINDS = { ".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml" };

const server = createServer((request, response) => {
  const path = join(site, decodeURIComponent(new URL(request.url, "http://x").pathname));
  const found = existsSync(path) && statSync(path).isFile();
  response.writeHead(found ? 200 : 404, { "Content-Type": KINDS[extname(path)] ?? "application/octet-stream" });
  response.end(found ? readFileSync(path) : "");
}).listen(0, "127.0.0.1");
await new Promise((resolve) => server.once("listening", resolve));
const home = `http://127.0.0.1:${server.address().port}/`;

function* pages(folder) {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) yield* pages(path);
    else if (entry.name.endsWith(".html")) yield relative(site, path);
  }
}
const all = [...pages(site)].sort();
const opened = all.filter((name, i) => !name.startsWith("reference/") || i % Number(part) === 0);
const wrong = [];
const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
const page = await browser.newPage({ viewport: { width: 400, height: 800 } });
let here = "";
page.on("console", (m) => m.type() === "error" && wrong.push(`${here}: console: ${m.text()}`));
page.on("pageerror", (e) => wrong.push(`${here}: ${e}`));
page.on("response", (r) => r.status() >= 400 && wrong.push(`${here}: ${r.url()} is missing`));
page.on("request", (r) => /^(http:\/\/127|data:)/.test(r.url()) || wrong.push(`${here}: asks for ${r.url()}`));

for (here of opened) {
  await page.goto(home + here);
  const width = await page.evaluate(() => document.documentElement.scrollWidth);
  if (width > 400) wrong.push(`${here}: ${width} pixels wide on a screen of 400`);
}
if (all.includes("search.html")) {
  here = "search";
  await page.goto(home + "search.html?q=conv1d");
  try {
    await page.waitForSelector('ul.search a[href*="conv1d"]', { timeout: 20000 });
  } catch {
    wrong.push("search: conv1d finds no page of that name");
  }
}
const plain = await browser.newPage({ javaScriptEnabled: false });
for (const name of opened.filter((name) => !name.startsWith("reference/") && name !== "search.html")) {
  await plain.goto(home + name);
  const text = await plain.locator("body").textContent();
  if (text.trim().length < 40) wrong.push(`${name}: no text without JavaScript`);
}
if (pictures) {
  mkdirSync(pictures, { recursive: true });
  for (const width of [400, 1280]) {
    await page.setViewportSize({ width, height: 900 });
    for (const name of ["index", "start", "figures", "essay", "reference", "reference/nn_functional_conv1d",
      "reference/conv1d", "tutorials/physics", "coverage", "reference/in-tensor", "project/readme"]) {
      if (!all.includes(`${name}.html`)) continue;
      await page.goto(`${home}${name}.html`);
      await page.screenshot({ path: join(pictures, `${name.replace("/", "-")}-${width}.png`) });
    }
    await page.goto(home + "search.html?q=conv1d");
    await page.waitForTimeout(1500);
    await page.screenshot({ path: join(pictures, `search-${width}.png`) });
  }
}
await browser.close();
server.close();
console.log(wrong.slice(0, 50).join("\n"));
console.log(`${opened.length} pages in a browser, ${wrong.length} faults`);
process.exit(wrong.length ? 1 : 0);
