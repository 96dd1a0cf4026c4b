// The page of a profile: where the time of a process went, as two flame graphs and three tables.

// The stacks of a profile as a tree. Each has its frames from the outermost on, and what `add` makes of it.
class StackTree {
  constructor() {
    Object.assign(this, { name: [-1], parent: [-1], total: [0], self: [0] });
    this.nodes = new Map();
  }

  add(frames, ns) {
    if (ns === 0) return;
    let node = 0;
    for (const name of frames) {
      const key = node + " " + name;
      if (!this.nodes.has(key)) {
        this.nodes.set(key, this.name.length);
        this.name.push(name);
        this.parent.push(node);
        this.total.push(0);
        this.self.push(0);
      }
      node = this.nodes.get(key);
      this.total[node] += ns;
    }
    this.self[node] += ns;
  }
}

class ProfileFlame extends Flame {
  constructor(state, say, whole) {
    super(state, () => {}, say);
    this.whole = whole;
    this.canvas.id = "";
    this.canvas.className = "flame";
  }

  words(node) {
    const name = node === 0 ? this.whole : this.state.trace.meta.names[this.tree.name[node]];
    return name + "  " + duration(this.tree.total[node]);
  }

  detail(node) {
    const share = 100 * this.tree.total[node] / Math.max(this.tree.total[0], 1);
    return share.toFixed(1) + " % of " + duration(this.tree.total[0]) + ", " + duration(this.tree.self[node]) + " of its own";
  }
}

function time(ns) {
  return ns === 0 ? "-" : duration(ns);
}

function figure(n) {
  return n === 0 ? "-" : count(n);
}

// A heading with a table below it; nothing where there are no rows.
function part(heading, heads, rows, numbers) {
  if (rows.length === 0) return [];
  const table = tableOf(heads, rows.map((row) => tableRow(row, numbers)), numbers);
  return [element("h2", { textContent: heading }), table];
}

class ProfilePage {
  constructor(profile) {
    const names = profile.names;
    this.profile = profile;
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    this.state = { trace: { meta: { names } }, colours: new Colours(names), theme: dark ? "dark" : "light" };
    document.documentElement.dataset.theme = this.state.theme;
    const say = (lines, event) => this.tip(lines, event);
    this.running = new ProfileFlame(this.state, say, "running");
    this.waiting = new ProfileFlame(this.state, say, "waiting");
    this.running.take(this.runningTree());
    this.waiting.take(this.waitingTree());
  }

  runningTree() {
    const { running, kernel, kernel_rest } = this.profile, tree = new StackTree();
    for (const [own, inKernel, frames] of running) {
      tree.add(frames, own);
      tree.add([...frames, kernel], inKernel);
    }
    tree.add([kernel], kernel_rest);
    return tree;
  }

  waitingTree() {
    const { waiting, unseen, unseen_ns } = this.profile, tree = new StackTree();
    for (const [ns, , , purpose, frames] of waiting) tree.add([...frames, purpose], ns);
    tree.add([unseen], unseen_ns);
    return tree;
  }

  show() {
    const { title, summary, notes } = this.profile;
    document.title = title;
    document.getElementById("title").textContent = title;
    const lines = notes.map((textContent) => element("p", { className: "soft", textContent }));
    const flames = [["What ran", this.running], ["What was waited for", this.waiting]]
      .filter(([, flame]) => flame.tree.total[0] > 0)
      .flatMap(([textContent, flame]) => [element("h2", { textContent }), flame.canvas]);
    this.tables = element("div", {});
    document.getElementById("content").append(element("p", { textContent: summary }), ...lines, ...flames, this.tables);
    this.showTables("");
    this.draw();
    performance.mark("shown");
    performance.mark("whole");
    addEventListener("resize", () => this.draw());
    document.getElementById("search").addEventListener("input", (event) => this.showTables(event.target.value));
  }

  // The tables with the rows in which that text stands.
  showTables(text) {
    const { names, functions, waiting, threads } = this.profile;
    const wanted = text.toLowerCase();
    const has = (...texts) => texts.some((text) => text.toLowerCase().includes(wanted));
    const stackOf = (frames) => frames.map((name) => names[name]).reverse().join(" < ");
    this.tables.replaceChildren(
      ...part("Functions", ["self", "running", "waiting", "name", "module"],
        functions.filter(([, , , name, module]) => has(name, module))
          .map(([self, running, waiting, name, module]) => [time(self), time(running), time(waiting), name, module]), [0, 1, 2]),
      ...part("Waits", ["waited", "times", "longest", "for", "in"],
        waiting.filter(([, , , purpose, frames]) => has(names[purpose], stackOf(frames)))
          .map(([ns, times, longest, purpose, frames]) => [time(ns), count(times), time(longest), names[purpose], stackOf(frames)]), [0, 1, 2]),
      ...part("Threads", ["running", "ready", "waiting", "waits", "longest", "preempted", "tid", "name"],
        threads.filter(([tid, name]) => has(String(tid), name))
          .map(([tid, name, running, ready, waiting, waits, longest, preemptions]) =>
            [time(running), time(ready), time(waiting), figure(waits), time(longest), figure(preemptions), String(tid), name]), [0, 1, 2, 3, 4, 5, 6]),
    );
  }

  draw() {
    for (const flame of [this.running, this.waiting]) {
      if (flame.tree.total[0] > 0) flame.draw();
    }
  }

  tip(lines, event) {
    const tip = document.getElementById("tip");
    tip.hidden = !lines;
    if (!lines) return;
    const [head, ...others] = lines;
    tip.replaceChildren(element("b", { textContent: head }), ...others.map((textContent) => element("div", { textContent })));
    tip.style.left = Math.max(Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8), 0) + "px";
    tip.style.top = Math.max(Math.min(event.clientY + 14, innerHeight - tip.offsetHeight - 8), 0) + "px";
  }
}

addEventListener("error", (event) => {
  document.getElementById("trouble").hidden = false;
  document.getElementById("trouble").textContent = "This page failed: " + event.message;
});

new ProfilePage(JSON.parse(document.getElementById("data").textContent)).show();
