"use strict";
// Colours, light and dark.

const COLOURS = 8;
const DASHES = 6;

/** The colours of the style sheets, as they are now. */
class Theme {
  constructor() {
    const style = getComputedStyle(document.documentElement);
    this.get = name => style.getPropertyValue(name).trim();
    this.muted = this.get("--muted");
    this.grid = this.get("--grid");
  }

  run(index) {
    return this.get(`--run-${index % COLOURS}`);
  }

  dash(index) {
    const lengths = this.get(`--dash-${index % DASHES}`).split(/\s+/).map(Number);
    return lengths.every(Number.isFinite) ? lengths : [];
  }

  op(op) {
    return this.get(`--op-${op}`);
  }
}

/** Light or dark as the system says, until the button is pressed; `changed` is called after each change. */
class ThemeSwitch {
  constructor(changed) {
    this.button = document.getElementById("theme");
    const system = matchMedia("(prefers-color-scheme: dark)");
    this.button.addEventListener("click", () => { this.set(!this.dark); changed(); });
    system.addEventListener("change", () => { this.set(system.matches); changed(); });
    this.button.hidden = false;
    this.set(system.matches);
  }

  set(dark) {
    this.dark = dark;
    this.apply(dark);
    this.button.textContent = dark ? "Light theme" : "Dark theme";
  }

  /** The colours of paper, whatever the page has now. */
  light() {
    this.apply(false);
    const theme = new Theme();
    this.apply(this.dark);
    return theme;
  }

  /** Shows a theme without keeping it. */
  apply(dark) {
    document.getElementById("dark").media = dark ? "screen" : "not all";
  }
}
