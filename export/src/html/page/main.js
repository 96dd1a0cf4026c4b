// The page as a whole: its state, what changes it, the keys, the address.

const byId = (id) => document.getElementById(id);
const SHORTEST = 50, HASH_LATER_MS = 250;
// Parts of the trace's time that are seen before and after the whole of it.
const BEFORE_ALL = 0.005, AFTER_ALL = 0.035;

class App {
  constructor(trace) {
    const dark = matchMedia("(prefers-color-scheme: dark)");
    this.state = {
      trace, colours: new Colours(trace.meta.names), layout: layOut(trace),
      from: -BEFORE_ALL * trace.length, to: (1 + AFTER_ALL) * trace.length, top: 0, slice: -1, stretch: null, found: null, at: -1,
      tab: 0, name: -1, theme: dark.matches ? "dark" : "light", isThemeChosen: false,
    };
    this.timeline = new Timeline(byId("timeline"), this.state);
    this.flame = new Flame(this.state, (name) => { this.state.name = name; this.changed(); }, (lines, event) => this.tip(lines, event));
    dark.addEventListener("change", () => {
      if (!this.state.isThemeChosen) this.setTheme(dark.matches ? "dark" : "light");
    });
  }

  // Shows the first picture, and waits until it is on the screen.
  async start() {
    const { meta } = this.state.trace;
    byId("title").textContent = document.title = "Ringmark: " + meta.title;
    byId("ending").textContent = [meta.part, meta.ends[0]].filter(Boolean).join("; ");
    TABS.forEach((name, place) => {
      const button = element("button", { textContent: name, title: "key " + (place + 1) });
      button.setAttribute("role", "tab");
      button.addEventListener("click", () => this.showTab(place));
      byId("tabs").append(button);
    });
    byId("tabs").append(element("span", { id: "stretch" }));
    byId("keys").append(keysText());
    this.readHash();
    document.documentElement.dataset.theme = this.state.theme;
    this.timeline.resize();
    this.showTab(this.state.tab);
    this.draw();
    await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
    performance.mark("shown");
  }

  // The texts of arguments are there: what was shown without them is shown again.
  takeTexts(texts) {
    const { state } = this;
    state.trace.texts = texts;
    if (state.found) this.search(state.found.words);
    if (state.tab > 0) this.showTab(state.tab);
    this.changed();
  }

  // Draws the timeline with the next frame.
  changed() {
    this.writeHash();
    if (this.isDue) return;
    this.isDue = true;
    requestAnimationFrame(() => {
      this.isDue = false;
      this.draw();
    });
  }

  draw() {
    this.timeline.draw();
  }

  // The end is not part of a stretch, but spans that began at the end of the trace are.
  stretch() {
    return this.state.stretch || [0, this.state.trace.length + 1];
  }

  // The tree of stacks in the stretch, made when it is first asked for.
  tree() {
    const key = this.stretch().join();
    if (this.treeKey !== key) {
      this.treeKey = key;
      this.made = makeTree(this.state.trace, ...this.stretch());
    }
    return this.made;
  }

  // The durations in the stretch by name, made when they are first asked for.
  durations() {
    const key = this.stretch().join();
    if (this.durationsKey !== key) {
      this.durationsKey = key;
      this.sorted = durationsByName(this.state.trace, this.stretch());
    }
    return this.sorted;
  }

  showTab(tab) {
    this.state.tab = tab;
    [...byId("tabs").children].forEach((button, place) => {
      if (button.tagName === "BUTTON") button.setAttribute("aria-selected", place === tab);
    });
    const { stretch } = this.state;
    byId("stretch").textContent = stretch ? duration(stretch[1] - stretch[0]) + " selected (Escape: all)" : "";
    const content = byId("content");
    if (tab === 3) {
      content.replaceChildren(this.flame.canvas);
      this.flame.take(this.tree());
      this.flame.draw();
    } else {
      content.replaceChildren([summaryPanel, detailsPanel, spansPanel, null, threadsPanel][tab](this));
    }
    this.changed();
  }

  setTheme(theme) {
    this.state.theme = theme;
    document.documentElement.dataset.theme = theme;
    this.showTab(this.state.tab);
  }

  switchTheme() {
    this.state.isThemeChosen = true;
    this.setTheme(this.state.theme === "dark" ? "light" : "dark");
  }

  resize() {
    this.timeline.resize();
    this.scroll(0);
    if (this.state.tab === 3) this.flame.draw();
  }

  // Shows the selected stretch, or the slice.
  fit() {
    const { stretch, slice } = this.state;
    if (stretch) this.look(...stretch);
    else if (slice >= 0) this.goTo(slice);
  }

  lookAtAll() {
    const { length } = this.state.trace;
    this.look(-BEFORE_ALL * length, (1 + AFTER_ALL) * length);
  }

  // Shows a stretch of time, as far as there is one.
  look(from, to) {
    const { length } = this.state.trace, least = -BEFORE_ALL * length, most = (1 + AFTER_ALL) * length;
    const wide = Math.min(Math.max(to - from, SHORTEST), most - least);
    const middle = (from + to) / 2;
    const first = Math.min(Math.max(middle - wide / 2, least), most - wide);
    this.state.from = first;
    this.state.to = first + wide;
    this.changed();
  }

  zoom(factor, time = (this.state.from + this.state.to) / 2) {
    const { from, to } = this.state;
    if ((to - from) * factor < SHORTEST) factor = SHORTEST / (to - from);
    this.look(time - (time - from) * factor, time + (to - time) * factor);
  }

  pan(part) {
    const by = (this.state.to - this.state.from) * part;
    this.look(this.state.from + by, this.state.to + by);
  }

  scroll(by) {
    const most = Math.max(0, this.state.layout.height + RULER - this.timeline.height);
    this.state.top = Math.min(Math.max(this.state.top + by, 0), most);
    this.changed();
  }

  // Scrolls as little as shows these heights.
  show(y, height) {
    const { top } = this.state, seen = this.timeline.height - RULER;
    this.scroll(y < top + HEAD ? y - HEAD - top : y + height > top + seen ? y + height - seen - top : 0);
  }

  select(slice) {
    this.state.slice = slice;
    if (slice >= 0) {
      const line = this.state.layout.lineOf.get(this.state.trace.rowOf(slice));
      this.show(line.y, line.height);
      const { trace } = this.state;
      if (!trace.isEvent(slice) && !trace.isState(slice)) this.state.name = this.state.trace.name[slice];
    }
    this.showTab(slice >= 0 ? 1 : this.state.tab);
  }

  // Selects a slice and shows it with some time around it.
  goTo(slice) {
    const { trace } = this.state;
    const start = trace.start[slice], long = Math.max(trace.end[slice] - start, SHORTEST);
    this.look(start - long, start + 2 * long);
    this.select(slice);
  }

  showThread(number) {
    const block = this.state.layout.blocks.find((block) => block.thread === number);
    if (block) this.show(block.y, block.height);
  }

  goToLoss(loss) {
    // Before the trace there is no more to see than its margin.
    const { length } = this.state.trace;
    const long = Math.max(loss.to - loss.from, length * (isBeforeAll(loss) ? BEFORE_ALL : 1 / 1000));
    const block = this.state.layout.blocks.find((block) => block.losses.includes(loss));
    if (block) this.show(block.y, block.height);
    this.look(loss.from - long / 2, loss.to + long / 2);
  }

  chooseName(name) {
    this.state.name = name;
    this.showTab(2);
  }

  setStretch(stretch) {
    this.state.stretch = stretch;
    if (stretch && this.state.tab < 2) this.state.tab = 2;
    this.showTab(this.state.tab);
  }

  search(words) {
    const { state } = this;
    state.found = words ? search(state.trace, words) : null;
    state.at = -1;
    byId("found").textContent = state.found ? counted(state.found.total, "match").replace("matchs", "matches") + (state.trace.texts ? "" : " so far") : "";
    this.changed();
  }

  // Goes to the next match in time, or to the one before; after the last one to the first.
  step(direction) {
    const { found, trace, at } = this.state;
    if (!found || found.total === 0) return;
    const key = (slice) => direction * trace.start[slice];
    let best = -1, wrapped = -1;
    for (let slice = 0; slice < trace.size; slice++) {
      if (found.before[slice] === found.before[slice + 1]) continue;
      const isAfter = at < 0 || key(slice) > key(at) || (key(slice) === key(at) && direction * (slice - at) > 0);
      if (isAfter && (best < 0 || key(slice) < key(best))) best = slice;
      if (wrapped < 0 || key(slice) < key(wrapped)) wrapped = slice;
    }
    this.state.at = best >= 0 ? best : wrapped;
    this.goTo(this.state.at);
  }

  slowest() {
    const { trace, tab, name } = this.state;
    const [slice] = slowest(trace, tab === 2 ? name : -1, this.stretch(), 1);
    if (slice !== undefined) this.goTo(slice);
  }

  nextOpen() {
    const { trace, slice } = this.state;
    for (let n = 1; n <= trace.size; n++) {
      const next = (Math.max(slice, -1) + n) % trace.size;
      if (trace.isOpen(next)) return this.goTo(next);
    }
  }

  nextLoss() {
    const { losses } = this.state.trace;
    if (losses.length === 0) return;
    this.loss = ((this.loss ?? -1) + 1) % losses.length;
    this.goToLoss(losses[this.loss]);
  }

  neighbour(by) {
    const { trace, slice } = this.state;
    if (slice < 0) return this.slowest();
    const row = trace.rowOf(slice), next = slice + by;
    if (next < row.from || next >= row.to) return;
    if (trace.end[next] < this.state.from || trace.start[next] > this.state.to) this.goTo(next);
    else this.select(next);
  }

  inner() {
    const { trace, slice } = this.state;
    if (slice < 0) return;
    const row = trace.rowOf(slice), number = row.track.rows[row.depth + 1];
    if (number === undefined || row.track.thread < 0) return;
    const next = trace.firstAt(trace.start[slice], trace.rows[number].from, trace.rows[number].to);
    if (next < trace.rows[number].to && trace.start[next] < trace.end[slice]) this.select(next);
  }

  tip(lines, event) {
    const tip = byId("tip");
    tip.hidden = !lines;
    if (!lines) return;
    const [head, ...others] = lines.map((text) => text.length > 400 ? text.slice(0, 399) + "…" : text);
    tip.replaceChildren(element("b", { textContent: head }), ...others.map((textContent) => element("div", { textContent })));
    tip.style.left = Math.max(Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8), 0) + "px";
    tip.style.top = Math.max(Math.min(event.clientY + 14, innerHeight - tip.offsetHeight - 8), 0) + "px";
  }

  // What of the state the address keeps.
  writeHash() {
    clearTimeout(this.hashLater);
    this.hashLater = setTimeout(() => {
      const { from, to, top, slice, stretch, tab, name, isThemeChosen, theme, found } = this.state;
      const kept = new URLSearchParams({ t: Math.round(from) + "," + Math.round(to), y: Math.round(top), tab });
      if (slice >= 0) kept.set("s", slice);
      if (name >= 0) kept.set("n", name);
      if (stretch) kept.set("d", stretch.map(Math.round).join());
      if (isThemeChosen) kept.set("theme", theme);
      if (found) kept.set("q", found.words);
      history.replaceState(null, "", "#" + kept);
    }, HASH_LATER_MS);
  }

  readHash() {
    const kept = new URLSearchParams(location.hash.slice(1)), { state } = this;
    const numbers = (key) => (kept.get(key) || "").split(",").map(Number);
    const pair = (key) => kept.has(key) && numbers(key).length === 2 && numbers(key).every(isFinite) && numbers(key)[0] < numbers(key)[1];
    const whole = (key, most) => kept.has(key) && Number.isInteger(Number(kept.get(key))) && Number(kept.get(key)) >= 0 && Number(kept.get(key)) < most;
    if (pair("t")) [state.from, state.to] = numbers("t");
    if (pair("d")) state.stretch = numbers("d");
    if (whole("y", 1e9)) state.top = Number(kept.get("y"));
    if (whole("tab", TABS.length)) state.tab = Number(kept.get("tab"));
    if (whole("s", state.trace.size)) state.slice = Number(kept.get("s"));
    if (whole("n", state.trace.meta.names.length)) state.name = Number(kept.get("n"));
    if (kept.get("theme") in THEMES) [state.theme, state.isThemeChosen] = [kept.get("theme"), true];
    if (kept.get("q")) {
      byId("search").value = kept.get("q");
      this.search(kept.get("q"));
    }
  }
}
