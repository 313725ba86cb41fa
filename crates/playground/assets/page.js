"use strict";
// The page: what is chosen, the runs, and what is shown of them. Frames of charts take it for their report.

const BETWEEN_CHARTS = 400; // milliseconds between two drawings of the charts
const MOST_STACKS = 3;
const START_STACKS = ["f2fs", "ext4", "rm-ipu"];

const part = id => document.getElementById(id);

class Playground {
  constructor(catalogue) {
    Object.assign(this, { catalogue, runs: [], simulator: new Simulator(), theme: new Theme(), drawn: 0, told: 0, waiting: 0 });
    this.frames = CHARTS.map(chart => new Frame(chart, this));
    part("charts").append(...this.frames.map(frame => frame.figure));
    part("legends").append(barLegend(), mapLegend());
    this.themes = new ThemeSwitch(() => this.draw());
    this.offer();
    this.listen();
    this.describe(true);
  }

  shown() {
    return this.runs;
  }

  /** The views that share an axis with `view`. */
  others(view) {
    return this.frames.map(frame => frame.view).filter(other => other && other !== view && other.share === view.share);
  }

  /** Fills the form with what can be chosen. */
  offer() {
    const options = list => list.map(({ name, title }) => el("option", { value: name }, title));
    part("workload").append(...options(this.catalogue.workloads));
    part("drive").append(...options(this.catalogue.drives));
    part("stacks").append(...this.catalogue.stacks.map(({ name, title, about }) => el("label", { title: about },
      el("input", { type: "checkbox", name: "stack", value: name, checked: START_STACKS.includes(name) }), el("span", {}, title))));
  }

  listen() {
    part("workload").addEventListener("change", () => this.describe(true));
    part("drive").addEventListener("change", () => this.describe(true));
    part("stacks").addEventListener("change", ({ target }) => { this.describe(false); this.tellStack(target); });
    part("setup").addEventListener("submit", event => { event.preventDefault(); this.start(); });
    part("stop").addEventListener("click", () => this.stop());
    part("save-job").addEventListener("click", () => save(this.asked.workload, this.asked.job, "text/plain"));
    part("save-results").addEventListener("click", () => save("results.json", JSON.stringify(this.results(), null, 2), "application/json"));
    let width = document.body.clientWidth;
    new ResizeObserver(() => {
      if (document.body.clientWidth === width) return;
      width = document.body.clientWidth;
      this.draw();
    }).observe(document.body);
  }

  chosen(list) {
    return this.catalogue[`${list}s`].find(({ name }) => name === part(list).value);
  }

  chosenStacks() {
    const names = [...document.querySelectorAll("#stacks input:checked")].map(input => input.value);
    return this.catalogue.stacks.filter(({ name }) => names.includes(name));
  }

  /** Says what is chosen; `anew` writes the job anew. */
  describe(anew) {
    const [workload, drive] = [this.chosen("workload"), this.chosen("drive")];
    part("workload-about").textContent = workload.about;
    part("drive-about").textContent = `${drive.about} Shrunk to ${drive.scale}.`;
    if (anew) part("job").value = jobFor(workload, drive);
    for (const input of document.querySelectorAll("#stacks input")) if (drive.lacks.includes(input.value)) input.checked = false;
    const count = this.chosenStacks().length;
    for (const input of document.querySelectorAll("#stacks input")) input.disabled = drive.lacks.includes(input.value) || (!input.checked && count >= MOST_STACKS);
    part("run").disabled = this.isBusy() || !count;
    part("stack-about").textContent = count ? (count === MOST_STACKS ? "For another one, leave one of these out." : "") : "Choose at least one.";
  }

  tellStack({ value, checked }) {
    if (checked) part("stack-about").textContent = this.catalogue.stacks.find(({ name }) => name === value).about;
  }

  isBusy() {
    return this.runs.some(run => !run.isOver);
  }

  /** What each run is asked, but for its stack. */
  request() {
    const [workload, drive] = [this.chosen("workload"), this.chosen("drive")];
    return {
      drive: drive.name, workload: workload.name, job: part("job").value, scale: drive.scale,
      seed: Math.max(0, Math.floor(part("seed").valueAsNumber) || 0), precondition: part("precondition").checked,
    };
  }

  start() {
    this.stop();
    this.asked = this.request();
    this.runs = this.chosenStacks().map((stack, index) => new Run(stack, index));
    part("cards").replaceChildren(...this.runs.map(run => run.card));
    for (const id of ["answer", "over", "again"]) part(id).hidden = false;
    part("command").textContent = command(this.asked, this.runs);
    part("answer").scrollIntoView({ block: "start", behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
    for (const run of this.runs) {
      const hear = message => { if (!run.isOver) { run.hear(message); this.changed(); } };
      this.simulator.start({ stack: run.stack.name, ...this.asked }, hear)
        .catch(error => hear({ kind: "failed", message: `This browser cannot run the simulator: ${error.message}` }));
    }
    this.changed();
    this.draw();
  }

  stop() {
    this.simulator.stop();
    this.runs.forEach(run => run.stop());
    this.changed();
  }

  /** Shows what has changed; the charts not more often than they can be read. */
  changed() {
    const busy = this.isBusy();
    part("stop").disabled = !busy;
    part("run").disabled = busy || !this.chosenStacks().length;
    part("save-results").disabled = !this.runs.some(run => run.results);
    if (!this.runs.length) return;
    const words = verdict(this.runs, !busy);
    if (!words) part("verdict").textContent = busy ? "Making the volumes and the program's files." : "";
    else if (!busy || performance.now() - this.told > 2000) {
      this.told = performance.now();
      part("verdict").textContent = words;
    }
    const most = Math.max(1, ...this.runs.map(run => (run.parts ?? []).reduce((sum, part) => sum + part, 0)));
    this.runs.forEach(run => run.drawBar(most));
    part("status").textContent = busy ? "Running" : this.runs.every(run => run.state === "done") ? "Done" : "";
    clearTimeout(this.waiting);
    const wait = busy ? Math.max(0, this.drawn + BETWEEN_CHARTS - performance.now()) : 0;
    this.waiting = setTimeout(() => this.drawCharts(), wait);
  }

  draw() {
    this.theme = new Theme();
    this.runs.forEach(run => run.repaint());
    if (this.runs.length) this.drawCharts();
  }

  /** Draws the charts; the cursor stays where it is. */
  drawCharts() {
    this.drawn = performance.now();
    for (const frame of this.frames) {
      const index = frame.view?.index;
      frame.draw();
      if (index == null || !frame.view?.data || index >= frame.view.data[0].length) continue;
      frame.view.index = index;
      frame.view.place();
      frame.view.read(false);
    }
  }

  /** The results of all runs that have ended, as the command line writes them. */
  results() {
    const all = this.runs.map(run => run.results).filter(Boolean);
    return { ...all[0], runs: all.flatMap(results => results.runs) };
  }
}

/** A workload's job on a drive: `{1/8}` is that share of it. */
function jobFor({ job }, { bytes }) {
  return job.replaceAll(/\{1\/(\d+)\}/g, (_, share) => `${Math.floor(bytes / share / 2 ** 20)}m`);
}

/** The call of the command line that does the same. */
function command({ workload, drive, scale, seed, precondition }, runs) {
  const stacks = runs.map(run => run.stack.name).join(",");
  return `dovetail bench ${workload} --stack ${stacks} --drive ${drive} \\\n  --scale ${scale} --seed ${seed}${precondition ? " --precondition" : ""} --report report.html`;
}

/** Hands a text to the browser's downloads. */
function save(name, text, type) {
  const url = URL.createObjectURL(new Blob([text], { type }));
  el("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

const playground = new Playground(JSON.parse(part("catalogue").textContent));
