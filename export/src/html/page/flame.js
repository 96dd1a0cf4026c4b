// The flame graph: the time in each stack, over all threads, within the stretch or the whole trace.

const FLAME_LINE = 18;

class Flame {
  constructor(state, choose, say) {
    this.state = state;
    this.say = say;
    this.root = 0;
    this.canvas = element("canvas", { id: "flame", tabIndex: 0 });
    this.canvas.addEventListener("click", (event) => this.click(event, choose));
    this.canvas.addEventListener("mousemove", (event) => this.hover(event));
    this.canvas.addEventListener("mouseleave", () => say(null));
  }

  take(tree) {
    this.root = 0;
    this.tree = tree;
    this.inside = tree.parent.map(() => []);
    for (let node = 1; node < tree.parent.length; node++) this.inside[tree.parent[node]].push(node);
    this.inside.forEach((nodes) => nodes.sort((a, b) => tree.total[b] - tree.total[a]));
    tree.total[0] = this.inside[0].reduce((sum, node) => sum + tree.total[node], 0);
  }

  // Frames narrower than half a pixel are left out, with all in them.
  frames(width) {
    const frames = [];
    let rows = [{ node: this.root, x: 0 }];
    const scale = width / Math.max(this.tree.total[this.root], 1);
    for (let depth = 0; rows.length > 0 && depth < 500; depth++) {
      const next = [];
      for (const { node, x } of rows) {
        const wide = this.tree.total[node] * scale;
        frames.push({ node, x, wide, depth });
        let at = x;
        for (const inner of this.inside[node]) {
          const wide = this.tree.total[inner] * scale;
          if (wide < 0.5) break;
          next.push({ node: inner, x: at });
          at += wide;
        }
      }
      rows = next;
    }
    return frames;
  }

  draw() {
    const { canvas, state } = this, theme = THEMES[state.theme], ratio = window.devicePixelRatio || 1;
    const width = canvas.clientWidth || 600;
    this.shown = this.frames(width);
    const height = (this.shown.at(-1).depth + 1) * FLAME_LINE;
    canvas.style.height = height + "px";
    canvas.width = width * ratio;
    canvas.height = height * ratio;
    const context = canvas.getContext("2d");
    context.scale(ratio, ratio);
    context.font = FONT;
    context.textBaseline = "middle";
    if (this.inside[0].length === 0) {
      context.fillStyle = css(theme.soft);
      context.fillText("No span or call is in this stretch.", 3, FLAME_LINE / 2);
      return;
    }
    const letter = context.measureText("m").width;
    for (const { node, x, wide, depth } of this.shown) {
      const name = this.tree.name[node], y = depth * FLAME_LINE;
      context.fillStyle = css(name < 0 ? theme.line : state.colours.colour[name]);
      context.fillRect(x, y, Math.max(wide - 1, 0.5), FLAME_LINE - 1);
      const letters = Math.floor((wide - 6) / letter);
      if (letters < 3) continue;
      const text = this.words(node);
      context.fillStyle = css(name < 0 ? theme.fg : state.colours.ink[name]);
      context.fillText(text.length <= letters ? text : text.slice(0, letters - 1) + "…", x + 3, y + FLAME_LINE / 2, wide - 6);
    }
  }

  words(node) {
    const name = node === 0 ? "all threads" : this.state.trace.meta.names[this.tree.name[node]];
    return name + "  " + duration(this.tree.total[node]);
  }

  nodeAt(event) {
    const x = event.offsetX, depth = Math.floor(event.offsetY / FLAME_LINE);
    return this.shown.find((frame) => frame.depth === depth && x >= frame.x && x < frame.x + frame.wide);
  }

  // A click shows a frame at full width; one on the outermost goes a step back.
  click(event, choose) {
    const frame = this.nodeAt(event);
    if (!frame) return;
    this.root = frame.node === this.root ? Math.max(this.tree.parent[frame.node], 0) : frame.node;
    if (frame.node > 0) choose(this.tree.name[frame.node]);
    this.draw();
  }

  hover(event) {
    const frame = this.nodeAt(event);
    if (!frame) return this.say(null);
    this.say([this.words(frame.node), frame.node ? this.detail(frame.node) : ""], event);
  }

  detail(node) {
    const { tree } = this;
    return counted(tree.count[node], "slice") + ", " + duration(tree.self[node] + tree.torn[node]) + " of its own";
  }
}
