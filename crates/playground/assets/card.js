"use strict";
// A run: its worker's messages, and the card that shows what came of it.

const STAGES = { precondition: "Ageing the drive", prepare: "Making files", run: "Running" };

class Run {
  constructor(stack, index) {
    Object.assign(this, { stack, index, shown: true, title: stack.title, label: stack.title, figures: null, data: { series: {} }, state: "waiting", results: null });
    this.build();
  }

  get isOver() {
    return this.state === "done" || this.state === "failed" || this.state === "stopped";
  }

  build() {
    this.where = el("p", { class: "where" }, "Starting");
    this.bar = el("progress", { max: 1, "aria-label": `${this.title}: how much is done` });
    this.sentence = el("p", { class: "sentence" });
    this.big = el("span", { class: "number" }, MISSING);
    this.tiles = el("dl", { class: "tiles" });
    this.track = el("div", { class: "track" }, ...GROUPS.map(group => el("i", { class: `t${group.index}`, title: group.name })));
    this.volume = new Picture("The volume", "What the file system sees: parts of the volume, in the order of addresses.");
    this.writes = new Picture("Where it writes", "Where in the volume the writes of the last moments went. Grey: nowhere. Yellow: most of them.");
    this.drive = new Picture("The flash", "What the drive sees: each column is a line of pages, which are erased together.");
    this.card = el("article", { class: "card", "aria-labelledby": `card-${this.index}` },
      el("h3", { id: `card-${this.index}` }, swatch(this.index), el("span", {}, this.title)),
      this.where, this.bar,
      el("p", { class: "big" }, this.big, el("span", {}, " bytes on flash for each byte of the program")),
      el("div", { class: "bar" }, this.track),
      this.sentence, this.tiles, this.writes.box, this.volume.box, this.drive.box);
  }

  /** Takes a message of the worker. */
  hear(message) {
    if (message.kind === "failed") return this.end("failed", message.message);
    if (message.kind === "end") {
      this.results = message.results;
      const [{ error }] = message.results.runs;
      return error ? this.end("failed", error) : this.end("done", "Done");
    }
    this.state = message.stage;
    this.progress(STAGES[message.stage], message.share);
    if (message.kind === "frame") this.see(message);
  }

  progress(text, share) {
    this.where.textContent = share == null ? text : `${text}: ${Math.floor(100 * share)} %`;
    if (share == null) this.bar.removeAttribute("value");
    else this.bar.value = share;
  }

  end(state, text) {
    this.state = state;
    this.where.textContent = text;
    this.bar.hidden = true;
    this.card.classList.toggle("broken", state === "failed");
  }

  stop() {
    if (!this.isOver) this.end("stopped", this.figures ? "Stopped; what stands here was measured until then" : "Stopped before anything was measured");
  }

  /** Shows the run as it stands. */
  see({ figures, volume, writes, drive }) {
    this.writes.show(writes, 1, writeWords);
    this.volume.show(volume.length > 15 ? volume : [], 1, volumeWords);
    this.drive.show(drive.cells, drive.columns, driveWords);
    if (!figures) return;
    this.figures = figures;
    this.data = { series: figures.series };
    this.parts = shares(figures);
    this.big.textContent = figures.totals.total_waf == null ? MISSING : significant(figures.totals.total_waf);
    this.sentence.textContent = `${sentence(figures)} ${reason(this.parts)}`;
    this.tiles.replaceChildren(...this.facts(figures).map(([name, value, note]) => el("div", {}, el("dt", {}, name), el("dd", {}, value), note ? el("dd", { class: "about" }, note) : null)));
  }

  /** Speed and waits: `[name, value, note]`. */
  facts({ totals, latency }) {
    const rate = (name, value) => [name, `${significant(value)} MB/s`, null];
    return [
      ...(totals.written_bytes ? [rate("Writes", totals.write_mb_per_s)] : []),
      ...(totals.read_bytes ? [rate("Reads", totals.read_mb_per_s)] : []),
      ["Calls", `${count(totals.calls_per_s)} a second`, null],
      ...waits(latency).map(({ name, half, most }) => [`Wait for a ${name}`.replace("a fsync", "an fsync"), half, `half are done by then (p50), 99 of 100 by ${most} (p99)`]),
    ];
  }

  /** Draws the bar, as long as its share of `most`. */
  drawBar(most) {
    const parts = this.parts ?? [];
    [...this.track.children].forEach((mark, index) => { mark.style.width = `${(100 * (parts[index] ?? 0)) / most}%`; });
    const told = GROUPS.map((group, index) => parts[index] > 0.005 && `${group.name} ${significant(parts[index])}`).filter(Boolean).join("; ");
    this.track.setAttribute("role", "img");
    this.track.setAttribute("aria-label", told ? `For each byte of the program: ${told}` : "Nothing written so far");
  }

  repaint() {
    this.writes.again();
    this.volume.again();
    this.drive.again();
  }
}

/** The textures of the bars, with their meaning. */
function barLegend() {
  return el("div", {}, el("p", { class: "ends" }, "Colours of the bars"),
    el("ul", { class: "key-list" }, ...GROUPS.map(group => el("li", {}, el("span", { class: `key t${group.index}`, "aria-hidden": "true" }),
      el("span", {}, el("b", {}, group.name), `: ${group.about}`)))));
}
