// Chromium as tests use it: 1280 x 800, drawn in software, spoken to through two pipes as its DevTools
// protocol has it: JSON, each message ended by a zero byte. Nothing that the network has is reached.
//
// The command line of each script that uses this begins: CHROMIUM PROFILE PAGE.

import { spawn } from "node:child_process";

const [browser, profile, page] = process.argv.slice(2);
const OPTIONS = [
  "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--host-resolver-rules=MAP * ~NOTFOUND", "--remote-debugging-pipe",
  "--window-size=1280,800", "--user-data-dir=" + profile, "about:blank",
];

const chromium = spawn(browser, OPTIONS, { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] });
const [toBrowser, fromBrowser] = [chromium.stdio[3], chromium.stdio[4]];
const answers = new Map(), listeners = [];
let asked = 0, rest = "";

fromBrowser.setEncoding("utf8");
fromBrowser.on("data", (text) => {
  const messages = (rest + text).split("\0");
  rest = messages.pop();
  for (const message of messages.map(JSON.parse)) {
    if (message.id === undefined) listeners.forEach((listener) => listener(message));
    else answers.get(message.id)(message);
  }
});
chromium.on("exit", (code) => fail("the browser ended with " + code));

function fail(text) {
  console.error(text);
  process.exit(1);
}

function ask(method, params = {}, sessionId = undefined) {
  const id = ++asked;
  toBrowser.write(JSON.stringify({ id, method, params, sessionId }) + "\0");
  return new Promise((resolve) => answers.set(id, resolve)).then((answer) => {
    if (answer.error) fail(method + ": " + answer.error.message);
    return answer.result;
  });
}

function event(method) {
  return new Promise((resolve) => listeners.push((message) => message.method === method && resolve(message)));
}

// What an expression gives in the page, awaited.
export async function inPage(expression) {
  const { result, exceptionDetails } = await ask("Runtime.evaluate", { expression, awaitPromise: true, returnByValue: true }, session);
  if (exceptionDetails) fail(expression.slice(0, 80) + ": " + JSON.stringify(exceptionDetails.exception ?? exceptionDetails));
  return result.value;
}

export async function press(key) {
  const text = key.length === 1 ? key : undefined;
  await ask("Input.dispatchKeyEvent", { type: "keyDown", key, text }, session);
  await ask("Input.dispatchKeyEvent", { type: "keyUp", key }, session);
  await inPage("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))");
}

const { targetInfos } = await ask("Target.getTargets");
const { targetId } = targetInfos.find((target) => target.type === "page");
const { sessionId: session } = await ask("Target.attachToTarget", { targetId, flatten: true });

// What the page asked the network for, and what went wrong in it.
export const requests = [], errors = [];
const isTrouble = (method) => /^(Runtime.(exceptionThrown|consoleAPICalled)|Log.entryAdded|Page.javascriptDialogOpening)$/.test(method);
listeners.push(({ method, params }) => {
  if (method === "Network.requestWillBeSent" && !params.request.url.startsWith("file:")) requests.push(params.request.url);
  if (isTrouble(method)) errors.push(JSON.stringify(params).slice(0, 300));
});
for (const domain of ["Page", "Network", "Runtime", "Log"]) await ask(domain + ".enable", {}, session);
await resize(1280, 800);

// Opens the page, and gives the ms until a frame showed the trace. All of the page was read then.
export async function open() {
  const loaded = event("Page.loadEventFired");
  await ask("Page.navigate", { url: "file://" + page }, session);
  await loaded;
  return inPage(`(async () => {
    while (performance.getEntriesByName("whole").length === 0) {
      const trouble = document.getElementById("trouble");
      if (trouble && !trouble.hidden) throw new Error(trouble.textContent);
      await new Promise(requestAnimationFrame);
    }
    return performance.getEntriesByName("shown")[0].startTime;
  })()`);
}

// Another size of the window.
export async function resize(width, height, more = {}) {
  await ask("Emulation.setDeviceMetricsOverride", { width, height, deviceScaleFactor: 1, mobile: false, ...more }, session);
}

export async function setTheme(value) {
  await ask("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value }] }, session);
}

// A picture of the window, as PNG.
export async function picture() {
  const { data } = await ask("Page.captureScreenshot", { format: "png" }, session);
  return Buffer.from(data, "base64");
}

export async function close() {
  chromium.removeAllListeners("exit");
  await ask("Browser.close");
}
