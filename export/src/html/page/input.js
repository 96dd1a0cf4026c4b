// Keys, mouse and the size of the window.

function listenToKeys(app) {
  const { state } = app;
  const tab = (place) => () => { byId("panel").classList.remove("small"); app.resize(); app.showTab(place); };
  const actions = {
    w: () => app.zoom(0.7), s: () => app.zoom(1 / 0.7), a: () => app.pan(-0.2), d: () => app.pan(0.2),
    arrowleft: () => app.pan(-0.1), arrowright: () => app.pan(0.1), arrowup: () => app.scroll(-3 * LINE), arrowdown: () => app.scroll(3 * LINE),
    0: () => app.lookAtAll(), ",": () => app.neighbour(-1), ".": () => app.neighbour(1),
    p: () => { if (state.slice >= 0 && state.trace.parentOf(state.slice) >= 0) app.select(state.trace.parentOf(state.slice)); },
    c: () => app.inner(), f: () => app.fit(), x: () => app.slowest(), o: () => app.nextOpen(), l: () => app.nextLoss(),
    m: () => { if (state.slice >= 0) app.setStretch([state.trace.start[state.slice], state.trace.end[state.slice]]); },
    n: (event) => app.step(event.shiftKey ? -1 : 1),
    1: tab(0), 2: tab(1), 3: tab(2), 4: tab(3), 5: tab(4),
    h: () => { byId("panel").classList.toggle("small"); app.resize(); },
    t: () => app.switchTheme(), "/": () => byId("search").focus(), "?": () => byId("keys").showModal(),
    escape: () => { state.stretch = null; app.select(-1); },
  };
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.tagName === "INPUT") return;
    if (byId("keys").open) return event.key === "?" && byId("keys").close();
    const isInContent = byId("content").contains(event.target) && /^(Arrow|Enter)/.test(event.key);
    const action = actions[event.key.toLowerCase()];
    if (!action || isInContent) return;
    event.preventDefault();
    action(event);
  });
}

function listenToSearch(app) {
  const field = byId("search");
  field.addEventListener("input", () => app.search(field.value));
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter") app.step(event.shiftKey ? -1 : 1);
    if (event.key === "Escape") {
      field.value = "";
      app.search("");
      byId("timeline").focus();
    }
  });
  byId("theme").addEventListener("click", () => app.switchTheme());
  byId("help").addEventListener("click", () => byId("keys").showModal());
}

// A drag moves the view; with Shift, or in the ruler, it selects a stretch.
function listenToDrags(app) {
  const canvas = byId("timeline"), { state, timeline } = app;
  let drag = null;
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    const isStretch = event.shiftKey || event.offsetY < RULER;
    drag = { x: event.offsetX, y: event.offsetY, from: state.from, to: state.to, top: state.top, isStretch, moved: false };
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!drag) return hover(app, event);
    const dx = event.offsetX - drag.x;
    drag.moved ||= Math.abs(dx) > 3 || Math.abs(event.offsetY - drag.y) > 3;
    if (!drag.moved) return;
    if (drag.isStretch) {
      state.stretch = [drag.x, event.offsetX].map((x) => timeline.timeAt(Math.max(x, GUTTER))).sort((a, b) => a - b);
      return app.changed();
    }
    const by = -dx * (drag.to - drag.from) / (timeline.width - GUTTER);
    app.look(drag.from + by, drag.to + by);
    app.scroll(drag.top + drag.y - event.offsetY - state.top);
  });
  canvas.addEventListener("pointerup", (event) => {
    if (drag && !drag.moved) app.select(timeline.sliceAt(event.offsetX, event.offsetY));
    else if (drag && drag.isStretch) app.setStretch(state.stretch);
    drag = null;
  });
  canvas.addEventListener("pointerleave", () => app.tip(null));
}

function hover(app, event) {
  const { trace } = app.state, slice = app.timeline.sliceAt(event.offsetX, event.offsetY);
  if (slice < 0) return app.tip(lossUnder(app, event), event);
  const took = trace.isEvent(slice) ? "event" : (trace.isOpen(slice) ? "open at the end, for " : "") + duration(trace.end[slice] - trace.start[slice]);
  const more = app.timeline.besides(slice);
  const merged = more > 0 ? ["and " + count(more) + " more in this pixel: zoom in"] : [];
  const states = trace.statesIn(slice);
  app.tip([trace.nameOf(slice), took + ", at " + duration(trace.start[slice]), ...(states ? [states] : []), trace.textOf(slice), ...merged], event);
}

function lossUnder(app, event) {
  const { block } = lineAt(app.state.layout, event.offsetY - RULER + app.state.top);
  const time = app.timeline.timeAt(event.offsetX), slack = 4 / app.timeline.scale;
  const isUnder = (loss) => (isBeforeAll(loss) || loss.from - slack <= time) && time <= loss.to + slack;
  const loss = block && event.offsetX > GUTTER && block.losses.find(isUnder);
  return loss ? [counted(loss.events, "event") + " not here", "cause: " + loss.cause, isBeforeAll(loss) ? "before all that is here" : "from " + duration(loss.from) + " to " + duration(loss.to)] : null;
}

function listenToWheel(app) {
  byId("timeline").addEventListener("wheel", (event) => {
    event.preventDefault();
    if (event.ctrlKey) app.zoom(1.0015 ** event.deltaY, app.timeline.timeAt(Math.max(event.offsetX, GUTTER)));
    else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) app.pan((event.deltaX || event.deltaY) / 1000);
    else app.scroll(event.deltaY);
  }, { passive: false });
}

function trouble(words) {
  byId("trouble").hidden = false;
  byId("trouble").textContent = "This page failed: " + words;
}

addEventListener("error", (event) => trouble(event.message));

async function open() {
  const sections = await unpack(byId("data"));
  const meta = JSON.parse(new TextDecoder().decode(sections.section().bytes));
  const app = new App(new Trace(meta, sections.section()));
  [listenToKeys, listenToSearch, listenToDrags, listenToWheel].forEach((listen) => listen(app));
  addEventListener("resize", () => app.resize());
  await app.start();
  // The texts stand after the scripts, so that the first picture need not wait for them.
  if (document.readyState === "loading") await new Promise((done) => addEventListener("DOMContentLoaded", done));
  app.takeTexts(readTexts(await unpack(byId("texts"))));
  performance.mark("whole");
}

open().catch((error) => trouble(error.message));
