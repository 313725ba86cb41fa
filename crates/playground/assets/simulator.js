"use strict";
// The simulator: a program in this page, run by a worker for each stack, so that they run side by side.

class Simulator {
  constructor() {
    const text = id => document.getElementById(id).textContent.trim();
    this.source = URL.createObjectURL(new Blob([text("worker")], { type: "text/javascript" }));
    this.packed = text("program");
    this.workers = [];
    this.stops = 0;
  }

  /** The program, unpacked and compiled once. */
  async module() {
    this.compiled ??= this.compile();
    return this.compiled;
  }

  async compile() {
    const bytes = Uint8Array.from(atob(this.packed), letter => letter.charCodeAt(0));
    const unpacked = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return WebAssembly.compile(await new Response(unpacked).arrayBuffer());
  }

  /** Starts a run; `hear` gets its messages, the last one of which is an `end` or a `failed`. */
  async start(request, hear) {
    const stops = this.stops;
    const module = await this.module();
    if (stops !== this.stops) return;
    const worker = new Worker(this.source);
    const end = message => { worker.terminate(); hear(message); };
    worker.onmessage = ({ data }) => (data.kind === "end" || data.kind === "failed" ? end(data) : hear(data));
    worker.onerror = event => {
      event.preventDefault();
      end({ kind: "failed", message: `The simulator has stopped: ${event.message || "the browser gave it no memory"}.` });
    };
    this.workers.push(worker);
    worker.postMessage({ module, request });
  }

  /** Ends all runs where they are. */
  stop() {
    for (const worker of this.workers) worker.terminate();
    this.workers = [];
    this.stops += 1;
  }
}
