
// The page: charts, keys, the pinned tensor, tables.
const charts = [];
const alternatives = { stack: "Memory as a table", arena: "The arena as a table", lanes: "The engines as a table" };
function addChart(panel, kind, space, height, label) {
  const chart = { kind, space, height, chosen: -1, isUsed: false };
  const make = (tag, into, more) => into.appendChild(Object.assign(document.createElement(tag), more));
  const plot = make("div", panel, { className: "plot" });
  chart.canvas = make("canvas", plot, { tabIndex: 0 });
  chart.canvas.setAttribute("role", "application");
  chart.canvas.setAttribute("aria-label", label + ": arrow keys walk launches and tensors, Enter pins one; a table follows");
  chart.over = make("canvas", plot);
  chart.over.setAttribute("aria-hidden", "true");
  chart.legend = make("div", panel, { className: "legend" });
  chart.readout = make("p", panel, { className: "readout" });
  chart.readout.setAttribute("aria-live", "polite");
  const alternative = make("details", panel);
  make("summary", alternative, { textContent: alternatives[kind] });
  const host = make("div", alternative);
  alternative.addEventListener("toggle", () => {
    if (alternative.open && !host.firstChild) alternativeOf(chart, host, label);
  });
  listen(chart);
  charts.push(chart);
}

const phaseOf = i => PHASES[L.phase[i]] + (L.again[i] ? ", again" : "");
const launchText = i => i >= N ? "the end of the step"
  : `launch ${i + 1}: ${L.name[i]}${L.where[i] ? " (" + L.where[i] + ")" : ""}, ${phaseOf(i)}, ${time(L.cost[i])}`;
const fateText = v => FATES[V.fate[v]] + (V.again[v] ? ` (${V.again[v]} time${V.again[v] > 1 ? "s" : ""})` : "");
function tensorText(t) {
  const v = T.value[t];
  return `${V.name[v]}\n${bytes(V.bytes[v])}${T.offset[t] < 0 ? "" : " at +" + bytes(T.offset[t])}, ${LAYERS[V.layer[v]][0]}: ${fateText(v)}`
    + `\n${V.why[v]}\nfrom ${launchText(T.begin[t])}\nto ${launchText(T.end[t] - 1)}`;
}
function aliveText(space, i) {
  const alive = [];
  for (let t = 0; t < T.value.length; ++t)
    if (T.begin[t] <= i && i < T.end[t] && V.space[T.value[t]] === space && V.layer[T.value[t]] >= PERSISTENT) alive.push(t);
  alive.sort((a, b) => V.bytes[T.value[b]] - V.bytes[T.value[a]]);
  return `${launchText(i)}\n${bytes(sumAt(space, i))} alive, ${alive.length} tensors beside the model's`;
}
function workText(i) {
  if (L.done[i]) return `the kernels wait ${time(L.end[i] - L.begin[i])}\nfor launch ${L.other[i] + 1}: ${L.name[i]}`;
  const seconds = (L.end[i] - L.begin[i]) * 1e-12, done = L.other[i];
  return launchText(i) + `\non ${ENGINES[L.engine[i]]} from ${time(L.begin[i])} to ${time(L.end[i])}`
    + (L.moved[i] ? `\n${bytes(L.moved[i])} at ${(L.moved[i] / Math.max(seconds, 1e-12) / 1e9).toFixed(2)} GB/s` : "")
    + (done < 0 ? "" : `\ndone at launch ${done + 1}, for which the kernels ${L.end[done] > L.begin[done] ? "wait " + time(L.end[done] - L.begin[done]) : "don't wait"}`);
}
function textAt(chart, i, tensor) {
  if (i < 0) return "";
  if (chart.kind === "lanes") return workText(i);
  if (tensor >= 0) return tensorText(tensor) + (chart.kind === "stack" ? "\n" + aliveText(chart.space, i) : "");
  return aliveText(chart.space, i);
}
function tip(event, text) {
  const box = $("tip");
  box.style.display = text ? "block" : "none";
  if (!text) return;
  box.textContent = text;
  const r = box.getBoundingClientRect();
  box.style.left = Math.max(8, Math.min(event.clientX + 14, innerWidth - r.width - 8)) + "px";
  box.style.top = Math.max(8, Math.min(event.clientY + 14, innerHeight - r.height - 8)) + "px";
}

// The pinned tensor: what `tmc explain` says of it.
function pin(value) {
  pinned = value < 0 ? -1 : V.content[value];
  const lines = pinned < 0 ? [] : D.explained.of[pinned];
  $("pinned").textContent = lines.map(k => D.explained.lines[k]).join("\n");
  $("pin").hidden = !lines.length;
  $("find").hidden = pinned < 0 || V.cost[pinned] < 0;
  charts.forEach(drawOver);
  decisions.fill();
}

// The shown part of the step.
function show(from, to) {
  const least = xs[N] / Math.max(N, 1) / 20, wide = Math.min(Math.max(to - from, least), xs[N]);
  from = Math.min(Math.max(from, 0), xs[N] - wide);
  if (from === view.from && from + wide === view.to) return false;
  view.from = from; view.to = from + wide;
  later();
  return true;
}
function zoom(factor, about) {
  return show(about - (about - view.from) * factor, about + (view.to - about) * factor);
}
const middle = () => {
  const x = (xs[cursor] + xs[cursor + 1]) / 2;
  return view.from <= x && x <= view.to ? x : (view.from + view.to) / 2;
};
let isDue = false;
function later() {
  if (!isDue) requestAnimationFrame(() => { isDue = false; draw(); });
  isDue = true;
}
function walk(chart, to) {
  cursor = Math.min(Math.max(to, 0), N - 1);
  chart.chosen = -1;
  if (xs[cursor] < view.from || xs[cursor + 1] > view.to) {
    const wide = view.to - view.from;
    show(xs[cursor] - wide / 2, xs[cursor] + wide / 2);
  }
  say(chart);
}
function say(chart) {
  const chosen = tensorsAt(chart, cursor)[chart.chosen];
  chart.readout.textContent = textAt(chart, cursor, chosen ? chosen[0] : -1).replaceAll("\n", "; ");
  charts.forEach(drawOver);
}
function choose(chart, by) {
  const count = tensorsAt(chart, cursor).length;
  if (count) chart.chosen = Math.min(Math.max(chart.chosen + by, 0), count - 1);
  say(chart);
}
function enter(chart) {
  if (chart.kind === "lanes") return movedBy(cursor) >= 0 && pin(movedBy(cursor));
  if (chart.chosen < 0) choose(chart, 1);
  const chosen = tensorsAt(chart, cursor)[chart.chosen];
  if (chosen) pin(T.value[chosen[0]]);
}
function keyed(chart, e) {
  const step = e.shiftKey ? Math.max(1, Math.round(N / 20)) : 1;
  const actions = {
    ArrowRight: () => walk(chart, cursor + step), ArrowLeft: () => walk(chart, cursor - step),
    Home: () => walk(chart, 0), End: () => walk(chart, N - 1), p: () => walk(chart, D.peak),
    ArrowUp: () => choose(chart, 1), ArrowDown: () => choose(chart, -1),
    Enter: () => enter(chart), " ": () => enter(chart), Escape: () => pin(-1),
    "+": () => zoom(.5, middle()), "=": () => zoom(.5, middle()), "-": () => zoom(2, middle()), 0: () => show(0, xs[N]) };
  const action = actions[e.key.length === 1 ? e.key.toLowerCase() : e.key];
  if (!action || e.ctrlKey || e.metaKey || e.altKey) return;
  e.preventDefault();
  action();
}
function listen(chart) {
  const canvas = chart.canvas;
  const inside = e => { const r = canvas.getBoundingClientRect(); return [e.clientX - r.left, e.clientY - r.top]; };
  let dragged = null;
  canvas.addEventListener("pointermove", e => {
    const [x, y] = inside(e);
    if (dragged) {
      const by = (x - dragged.x) / (chart.f.right - chart.f.left) * (dragged.to - dragged.from);
      dragged.far = dragged.far || Math.abs(x - dragged.x) > 4;
      if (dragged.far) show(dragged.from - by, dragged.to - by);
    }
    tip(e, dragged && dragged.far ? "" : textAt(chart, ...under(chart, x, y)));
  });
  canvas.addEventListener("pointerdown", e => { dragged = { x: inside(e)[0], from: view.from, to: view.to }; canvas.setPointerCapture(e.pointerId); });
  canvas.addEventListener("pointercancel", () => { dragged = null; });
  canvas.addEventListener("pointerup", e => {
    const isClick = dragged && !dragged.far;
    dragged = null;
    if (!isClick) return;
    const [i, tensor] = under(chart, ...inside(e));
    if (i < 0) return;
    cursor = i;
    chart.chosen = tensorsAt(chart, i).findIndex(([t]) => t === tensor);
    say(chart);
    if (chart.kind === "lanes" ? movedBy(i) >= 0 : tensor >= 0) pin(chart.kind === "lanes" ? movedBy(i) : T.value[tensor]);
  });
  canvas.addEventListener("pointerleave", e => tip(e, ""));
  canvas.addEventListener("wheel", e => {
    if (!e.ctrlKey && document.activeElement !== canvas) return;
    const [x] = inside(e), about = view.from + (x - chart.f.left) / (chart.f.right - chart.f.left) * (view.to - view.from);
    if (zoom(1.3 ** Math.sign(e.deltaY), about) || e.ctrlKey) e.preventDefault();
  }, { passive: false });
  canvas.addEventListener("keydown", e => keyed(chart, e));
  canvas.addEventListener("focus", () => { chart.isUsed = true; say(chart); });
  canvas.addEventListener("blur", () => { chart.isUsed = false; drawOver(chart); });
}

// A table that sorts by its heads and shows its rows in parts. A column is [name, class, text, key, hint?];
// of the class "name" it pins the row's value, which `valueOf` gives. Rows that are equal follow `sizeOf`.
function Table(host, label, columns, rows, valueOf, sortBy, up, sizeOf = () => 0) {
  const PART = 40;
  let shown = PART;
  host.innerHTML = `<div class="scroll" tabindex="0" role="region"><table><caption></caption><thead><tr></tr></thead><tbody></tbody></table></div><div class="more"></div>`;
  host.firstChild.setAttribute("aria-label", label);
  const head = host.querySelector("thead tr"), body = host.querySelector("tbody"), more = host.querySelector(".more");
  columns.forEach(([name, c], k) => {
    const cell = head.appendChild(document.createElement("th")), button = cell.appendChild(document.createElement("button"));
    cell.className = c; cell.scope = "col";
    button.addEventListener("click", () => {
      if (k === sortBy) up = !up; else { sortBy = k; up = c !== "n"; }
      this.fill();
    });
  });
  this.fill = () => {
    columns.forEach(([name], k) => {
      head.children[k].setAttribute("aria-sort", k !== sortBy ? "none" : up ? "ascending" : "descending");
      head.children[k].firstChild.textContent = name + (k !== sortBy ? "" : up ? " \u25b2" : " \u25bc");
    });
    const list = rows(), key = columns[sortBy][3];
    list.sort((a, b) => { const x = key(a), y = key(b); return (x < y ? -1 : x > y ? 1 : 0) * (up ? 1 : -1) || sizeOf(b) - sizeOf(a) || a - b; });
    host.querySelector("caption").textContent = `${label}: ${Math.min(shown, list.length)} of ${list.length} rows`;
    body.textContent = "";
    for (const row of list.slice(0, shown)) {
      const line = body.insertRow(), value = valueOf(row);
      if (value >= 0 && V.content[value] === pinned) line.className = "pinned";
      for (const [, c, text, , hint] of columns) {
        const cell = line.insertCell();
        cell.className = c;
        if (hint) cell.title = hint(row);
        const into = c === "name" && value >= 0 ? cell.appendChild(document.createElement("button")) : cell;
        into.textContent = text(row);
        if (into === cell) continue;
        into.className = "name";
        into.addEventListener("click", () => {
          const at = [...body.children].indexOf(line);
          pin(value);
          this.fill();
          body.children[at].querySelector("button").focus({ preventScroll: true });
        });
      }
    }
    more.textContent = "";
    for (const [text, to] of list.length > shown ? [[`${Math.min(PART * 5, list.length - shown)} more`, shown + PART * 5], [`all ${list.length}`, list.length]]
      : list.length > PART ? [["fewer", PART]] : [])
      more.appendChild(Object.assign(document.createElement("button"), { textContent: text })).addEventListener("click", () => { shown = to; this.fill(); });
  };
  this.fill();
}
const LAUNCH_COLUMNS = [["launch", "n", i => i + 1, i => i], ["at", "n", i => time(L.clock[i]), i => L.clock[i]]];
const NAME_COLUMNS = [["phase", "", phaseOf, phaseOf], ["name", "name", i => L.name[i], i => L.name[i]]];
function alternativeOf(chart, host, label) {
  const space = chart.space, launches = () => [...L.name.keys()];
  if (chart.kind === "stack")
    return new Table(host, label, [...LAUNCH_COLUMNS, ["alive", "n", i => bytes(sumAt(space, i)), i => sumAt(space, i)],
      ...LAYERS.map(([n], k) => [n, "n", i => bytes(levels[space][k][i]), i => levels[space][k][i]]).filter((c, k) => levels[space][k].some(b => b > 0)),
      ...NAME_COLUMNS], launches, () => -1, 0, true);
  if (chart.kind === "lanes")
    return new Table(host, label, [LAUNCH_COLUMNS[0], ["engine", "", i => L.done[i] ? "wait" : ENGINES[L.engine[i]], i => L.done[i] ? -1 : L.engine[i]],
      ["from", "n", i => time(L.begin[i]), i => L.begin[i]], ["to", "n", i => time(L.end[i]), i => L.end[i]],
      ["moves", "n", i => L.moved[i] ? bytes(L.moved[i]) : "", i => L.moved[i]], ...NAME_COLUMNS],
      () => launches().filter(i => L.end[i] > L.begin[i]), movedBy, 0, true);
  const value = t => T.value[t];
  return new Table(host, label, [["offset", "n", t => "+" + bytes(T.offset[t]), t => T.offset[t]], ["bytes", "n", t => bytes(V.bytes[value(t)]), t => V.bytes[value(t)]],
    ["from launch", "n", t => T.begin[t] + 1, t => T.begin[t]], ["to launch", "n", t => T.end[t], t => T.end[t]],
    ["class", "", t => LAYERS[V.layer[value(t)]][0], t => V.layer[value(t)]], ["tensor", "name", t => V.name[value(t)], t => V.name[value(t)]]],
    () => [...T.value.keys()].filter(t => T.offset[t] >= 0 && T.begin[t] < T.end[t] && V.space[value(t)] === space), value, 0, true);
}

const cost = ps => ps > 0 ? time(ps) : "-";
const decisions = new Table($("decisions"), "decisions", [["tensor", "name", v => V.name[v], v => V.name[v]], ["paid", "n", v => cost(V.paid[v]), v => V.paid[v]],
  ["bytes", "n", v => bytes(V.bytes[v]), v => V.bytes[v]], ["decision", "", fateText, v => FATES[V.fate[v]]],
  ["worth", "n", v => V.worth[v] < 0 ? "-" : time(V.worth[v]), v => V.worth[v]], ["cost", "n", v => time(V.cost[v]), v => V.cost[v]],
  ["type", "", v => V.type[v], v => V.type[v], v => V.why[v]]],
  () => { const part = $("filter").value.toLowerCase(); return [...V.name.keys()].filter(v => V.cost[v] >= 0 && V.name[v].toLowerCase().includes(part)); },
  v => v, 1, false, v => V.bytes[v] + (V.fate[v] === 2 || V.fate[v] === 5 ? 2 ** 50 : 0));
$("filter").addEventListener("input", decisions.fill);
$("unpin").addEventListener("click", () => pin(-1));
$("find").addEventListener("click", () => {
  $("filter").value = V.name[pinned];
  decisions.fill();
  $("decisions").scrollIntoView({ block: "center" });
});

$("cards").innerHTML = D.cards.map(() => `<div class="card"><b></b><span></span></div>`).join("");
D.cards.forEach(([value, name], k) => { const [b, span] = $("cards").children[k].children; b.textContent = value; span.textContent = name; });
layLevels();
const isThere = space => levels[space].some(layer => layer.some(b => b > 0));
const hasEngines = L.engine.some(e => e > 0);
$("lanes").hidden = $("beside").hidden = $("arenas").hidden = !hasEngines;
if (hasEngines) addChart($("panel-engines"), "lanes", 0, 200, "engines over the step");
addChart($("panel-stack"), "stack", 0, 320, "memory over the step");
addChart($("panel-arena"), "arena", 0, 430, "the arena");
for (const s of SPACES.keys())
  if (s && isThere(s))
    for (const [into, kind, height, label] of [["stacks", "stack", 180, "memory of the "], ["arenas", "arena", 290, "the arena of the "]]) {
      const panel = $(into).appendChild(document.createElement("div"));
      panel.className = "panel";
      addChart(panel, kind, s, height, label + SPACES[s]);
    }
function draw() {
  for (const chart of charts) {
    ({ stack: drawStack, arena: drawArena, lanes: drawLanes })[chart.kind](chart);
    drawOver(chart);
  }
}
function layX() {
  const byTime = $("bytime").checked;
  for (let i = 0; i <= N; ++i) xs[i] = byTime ? L.clock[i] : i;
  view.from = 0; view.to = Math.max(xs[N], 1e-9);
  draw();
}
$("bytime").addEventListener("change", layX);
$("persistent").addEventListener("change", later);
$("closer").addEventListener("click", () => zoom(.5, middle()));
$("farther").addEventListener("click", () => zoom(2, middle()));
$("whole").addEventListener("click", () => show(0, xs[N]));
addEventListener("resize", later);
dark.addEventListener("change", later);
layX();
