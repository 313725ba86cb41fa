"use strict";
// Runs the simulator beside the page. It gets `{module, request}`, and posts the simulator's messages.

/** Milliseconds between two looks at the run: often enough to seem to move. */
const BETWEEN = 120;

let memory = null;
let last = 0;

const page = {
  isDue() {
    const now = performance.now();
    if (now - last < BETWEEN) return 0;
    last = now;
    return 1;
  },
  tell(at, length) {
    postMessage(JSON.parse(new TextDecoder().decode(new Uint8Array(memory.buffer, at, length))));
  },
};

onmessage = async ({ data }) => {
  try {
    await run(data);
  } catch (error) {
    postMessage({ kind: "failed", message: `The simulator has stopped: ${error.message || error}.` });
  }
};

async function run({ module, request }) {
  const { exports } = await WebAssembly.instantiate(module, { page });
  memory = exports.memory;
  const bytes = new TextEncoder().encode(JSON.stringify(request));
  const at = exports.allocate(bytes.length);
  new Uint8Array(memory.buffer, at, bytes.length).set(bytes);
  exports.start(at, bytes.length);
}
