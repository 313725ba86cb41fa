"use strict";
// Charts of the papers' figures: each statement's numbers, the paper's beside ours, and the runs behind them.

/** Values of one statement that are drawn as columns rather than as bars. */
const COLUMNS_FROM = 7;
/** The most runs whose curves are drawn, and whose bars are. */
const MOST_CURVES = 8;
const MOST_BARS = 48;

/** The charts of all figures, each figure's at its own place. */
function figureCharts(figures) {
  return figures.flatMap((figure, at) => {
    const runs = figure.runs.map((data, index) => ({ data, index, label: data.label, shown: true }));
    const place = `figure-${at}`;
    const charts = [];
    if (figure.statements.length) charts.push(statementsChart(figure, place));
    if (runs.length && runs.length <= MOST_CURVES) charts.push(...runCurves(figure, runs, place));
    if (runs.length > 1) charts.push(...runBars(figure, runs.slice(0, MOST_BARS), place));
    return charts.map(chart => ({ ...chart, of: figure.name }));
  });
}

function statementsChart(figure, place) {
  return {
    id: `${figure.name}-statements`, place, title: "The paper's numbers and ours", wide: true, free: true,
    about: "Each statement on a scale of its own, from 0. Where a statement has several values of ours, the first is the one that is compared.",
    render: frame => new StatementsView(frame, figure.statements),
  };
}

/** Curves over what was written, or over time where little was. */
function runCurves(figure, runs, place) {
  const written = runs.every(run => (run.data.series.written_bytes?.at(-1) ?? 0) > 0);
  const all = [
    { name: "Written", unit: "MB/s", of: "Written", key: "write_mb_per_s" },
    { name: "Read", unit: "MB/s", of: "Read", key: "read_mb_per_s" },
    { name: "File system's WAF", unit: "", of: "WAF", key: "fs_waf" },
    { name: "Drive's WAF", unit: "", of: "WAF", key: "device_waf" },
    { name: "Map", unit: "MiB", of: "Map", size: 2 ** 20, key: "map_bytes" },
  ];
  const choices = all.filter(({ key }) => runs.some(run => run.data.series[key]?.some(value => value > 0))).map(choice => ({ ...choice, zeros: "No run has any." }));
  if (!choices.length) return [];
  const chart = over(written ? WRITTEN : TIME, { id: `${figure.name}-curves`, title: "Our runs", about: "Means of up to 100 parts of each run.", choices });
  return [{ ...chart, section: undefined, place, runs, share: null }];
}

/** A bar for each run. */
function runBars(figure, runs, place) {
  const all = [
    { name: "Written", key: "write_mb_per_s", text: value => `${significant(value)} MB/s` },
    { name: "Read", key: "read_mb_per_s", text: value => `${significant(value)} MB/s` },
    { name: "Calls", key: "calls_per_s", text: value => `${significant(value)} calls/s` },
    { name: "File system's WAF", key: "fs_waf", text: significant },
    { name: "Drive's WAF", key: "device_waf", text: significant },
  ];
  const has = ({ key }) => runs.some(run => run.data.totals[key] > 0);
  const choices = all.filter(has).map(choice => ({ ...choice, whole: () => 1, none: "No run has any." }));
  if (!choices.length) return [];
  const render = frame => {
    const { key, name } = frame.chosen;
    return causeBars(frame, [{ key: "value", name, index: 0 }], run => ({ value: run.data.totals[key] ?? 0 }), key, frame.chosen);
  };
  const of = figure.runs.length > runs.length ? ` The first ${runs.length} of ${figure.runs.length}.` : "";
  return [{ id: `${figure.name}-runs`, place, title: "Our runs as wholes", about: `A bar for each run.${of}`, runs, choices, render }];
}

/** What is drawn of a statement: rows of `{who, text, from, to, kind}`, or the heights of columns. */
function statementRows({ paper, ours, unit, verdict }) {
  const rows = [];
  const text = value => `${number(value)}${unit ? ` ${unit}` : ""}`;
  if (paper) rows.push({ who: "paper", text: paper[0] === paper[1] ? text(paper[0]) : `${number(paper[0])} to ${text(paper[1])}`, from: paper[0] === paper[1] ? 0 : paper[0], to: paper[1], kind: "paper" });
  const isNamed = ours[0]?.[0];
  ours.forEach(([name, value], index) => rows.push({ who: name || (index ? "" : "ours"), text: text(value), from: 0, to: value, kind: index && !isNamed ? "beside" : verdict }));
  return rows;
}

function number(value) {
  return value.toLocaleString("en-US", { maximumFractionDigits: value < 10 ? 3 : 1 });
}

function isColumns({ ours }) {
  return ours.length >= COLUMNS_FROM && !ours[0][0];
}

function statementMost({ paper, ours }) {
  return Math.max(paper?.[1] ?? 0, ...ours.map(([, value]) => value)) || 1;
}

class StatementsView {
  constructor(frame, statements) {
    Object.assign(this, { frame, statements, at: -1, silent: true });
    this.boxes = statements.map(statement => this.box(statement));
    frame.plot.append(el("div", { class: "statements" }, ...this.boxes));
    frame.focusable(frame.plot, `${frame.chart.title}: ${statements.length} ${statements.length === 1 ? "statement" : "statements"}`);
  }

  box(statement) {
    const most = statementMost(statement);
    const share = value => `${(100 * value) / most}%`;
    const line = ({ who, text, from, to, kind }) => el("div", { class: "line" }, el("span", { class: "who" }, who),
      el("div", { class: "track" }, el("i", { class: kind, style: `margin-left: ${share(from)}; width: max(2px, ${share(to - from)})` })), el("span", { class: "value" }, text));
    const head = el("p", {}, el("span", { class: `verdict-of ${statement.verdict}` }, statement.verdict), ` ${statement.what}`);
    if (!isColumns(statement)) return el("div", { class: "statement" }, head, ...statementRows(statement).map(line));
    const columns = statement.ours.map(([, value]) => el("i", { class: statement.verdict, title: number(value), style: `height: max(1px, ${share(value)})` }));
    const paper = statement.paper ? statementRows({ ...statement, ours: [] }).map(line) : [];
    return el("div", { class: "statement" }, head, ...paper, el("div", { class: "columns" }, ...columns), el("p", { class: "about" }, statement.text));
  }

  move(dx, dy) {
    this.goTo(this.at + (dx || dy));
  }

  edge(end) {
    this.goTo(end < 0 ? 0 : this.statements.length - 1);
  }

  goTo(index) {
    this.leave();
    this.at = Math.min(Math.max(index, 0), this.statements.length - 1);
    const { what, verdict } = this.statements[this.at];
    this.boxes[this.at].classList.add("at");
    this.frame.say([what, ...statementRows(this.statements[this.at]).map(({ who, text }) => `${who} ${text}`), verdict]);
  }

  leave() {
    this.boxes[this.at]?.classList.remove("at");
    this.at = -1;
  }

  rows() {
    const cells = ({ what, paper, ours, unit, verdict }) => ours.map(([name, value]) => [what, name, paper?.[0], paper?.[1], value, unit, verdict]);
    return [["statement", "name", "paper_low", "paper_high", "ours", "unit", "verdict"], ...this.statements.flatMap(cells)];
  }

  svg(theme) {
    return statementsSvg(this, theme);
  }
}

/** The fill of a bar: the paper's is grey, ours has the colour of its verdict. */
function statementFill(theme, kind) {
  return theme.get({ paper: "--control", beside: "--line" }[kind] ?? `--${kind}`);
}

function statementsSvg({ frame, statements }, theme) {
  const svg = new Svg(svgTitle(frame), theme);
  const [left, width] = [220, SVG_WIDTH - 330];
  let y = 52;
  for (const statement of statements) {
    const most = statementMost(statement);
    for (const words of svgLines(`${statement.what} (${statement.verdict})`)) {
      svg.label(16, y, words, "start", { "font-weight": 600 });
      y += 17;
    }
    const rows = statementRows(isColumns(statement) ? { ...statement, ours: [] } : statement);
    for (const { who, text, from, to, kind } of rows) {
      svg.label(left - 8, y, who, "end");
      svg.add("rect", { x: px(left + (width * from) / most), y: y - 10, width: px(Math.max((width * (to - from)) / most, 1.5)), height: 13, fill: statementFill(theme, kind) });
      svg.label(left + width + 8, y, text);
      y += 17;
    }
    if (isColumns(statement)) {
      const room = width / statement.ours.length;
      statement.ours.forEach(([, value], index) => svg.add("rect", { x: px(left + index * room), y: px(y + 38 - (48 * value) / most), width: px(room * 0.8), height: px(Math.max((48 * value) / most, 1)), fill: statementFill(theme, statement.verdict) }));
      svg.label(left - 8, y + 38, "ours", "end");
      y += 56;
      for (const words of svgLines(statement.text)) { svg.label(16, y, words); y += 17; }
    }
    y += 10;
  }
  return svg.file(y);
}

/** A sentence in lines that fit. */
function svgLines(text) {
  const most = (SVG_WIDTH - 40) / SVG_LETTER;
  const lines = [""];
  for (const word of text.split(" ")) {
    if (lines[lines.length - 1].length + word.length > most) lines.push("");
    lines[lines.length - 1] += `${lines[lines.length - 1] ? " " : ""}${word}`;
  }
  return lines;
}

const CHARTS = figureCharts(JSON.parse(document.getElementById("data").textContent).figures);
