// The charts: what they draw, and what lies under a point.
const dark = matchMedia("(prefers-color-scheme: dark)");
// Colours mean the same in all charts: classes of memory, then work without a move.
const LAYERS = [
  ["parameters", "#a9bac2"], ["optimizer", "#7b98a6"], ["batch and others", "#c3b1d3"],
  ["gradients", "#45a596"], ["activations, kept", "#5b9bd0"], ["activations, recomputed", "#e8973a"],
  ["moved", "#a184c0"], ["workspace", "#b7b35a"], ["reserved", "#d3cfc4"]];
const PERSISTENT = 3, AGAIN = 5, WORKSPACE = 7, RESERVED = 8;
const PHASES = ["forward", "backward", "update"], PHASE_COLOURS = ["#c4c4bb", "#8f8f87", "#5f5f59"], WAIT = "#d1495b";
const FATES = ["persistent", "kept", "recomputed", "in place", "short-lived", "moved"];
const ENGINES = D.engines, SPACES = D.spaces;
// Columns of D: launches {name, where, phase, again, cost, work, workSpace, clock, begin, end, other, done,
// engine, moved, group, value}, tensors {value, begin, end, alone, offset}, values {name, layer, space, fate,
// bytes, worth, cost, paid, again, type, why, content}. A launch with an `other` is work of another engine.
const L = D.launches, T = D.tensors, V = D.values, N = L.name.length;

const UNITS = [[2 ** 30, "GiB"], [2 ** 20, "MiB"], [1024, "KiB"], [1, "B"]];
function bytes(b) {
  const [unit, name] = UNITS.find(([u]) => b >= u) || UNITS[3];
  return (b / unit).toFixed(unit >= 2 ** 30 ? 2 : unit > 1 ? 1 : 0) + " " + name;
}
function time(ps) {
  const s = ps * 1e-12;
  return s >= 1 ? s.toFixed(2) + " s" : s >= 1e-3 ? (s * 1e3).toFixed(2) + " ms" : (s * 1e6).toFixed(1) + " us";
}
// Round steps of about `count` ticks between two numbers, and the decimals that tell them apart.
function ticks(low, high, count) {
  const raw = (high - low) / count || 1, power = 10 ** Math.floor(Math.log10(raw));
  const step = power * [1, 2, 5, 10].find(f => f * power >= raw * .999);
  const list = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high * (1 + 1e-12); ++k) list.push(k * step);
  return [list, Math.max(0, -Math.floor(Math.log10(step) + 1e-9))];
}
const xs = new Float64Array(N + 1);
const view = { from: 0, to: 1 }; // The shown part, in units of xs.
let cursor = D.peak, pinned = -1; // A launch; a content.
let levels; // Per space and layer, bytes at each launch.
function layLevels() {
  levels = SPACES.map(() => LAYERS.map(() => new Float64Array(N + 1)));
  const add = (layer, from, to, bytes) => { if (from < to) { layer[from] += bytes; layer[to] -= bytes; } };
  for (let t = 0; t < T.value.length; ++t) {
    const v = T.value[t];
    add(levels[V.space[v]][V.layer[v]], T.alone[t], T.end[t], V.bytes[v]);
  }
  for (let i = 0; i < N; ++i)
    if (L.work[i]) add(levels[L.workSpace[i]][WORKSPACE], i, Math.max(i, L.other[i]) + 1, L.work[i]);
  add(levels[0][RESERVED], 0, N, D.reserved);
  for (const space of levels) for (const layer of space) for (let i = 1; i <= N; ++i) layer[i] += layer[i - 1];
}
const sumAt = (space, i) => levels[space].reduce((sum, layer) => sum + layer[i], 0);
const isBase = k => k < PERSISTENT || k === RESERVED;
const shownLayers = space => [RESERVED, ...LAYERS.keys()].filter((k, i) => (!i || k !== RESERVED)
  && (space || $("persistent").checked || !isBase(k)) && levels[space][k].some(b => b > 0));
const legend = list => list.map(([n, c]) => `<span><i style="background:${c}"></i>${n}</span>`).join("");

// A chart is two canvases, the upper one for the cursor and the pinned tensor.
function frame(chart, low, high) {
  const ratio = devicePixelRatio || 1, width = chart.canvas.parentNode.clientWidth;
  for (const canvas of [chart.canvas, chart.over]) {
    canvas.style.height = chart.height + "px";
    canvas.width = width * ratio; canvas.height = chart.height * ratio;
    canvas.getContext("2d").setTransform(ratio, 0, 0, ratio, 0, 0);
  }
  const style = getComputedStyle(document.body), g = chart.canvas.getContext("2d");
  const f = chart.f = { g, width, left: width < 500 ? 62 : 76, right: width - 8, top: 8, low, high,
    fg: style.getPropertyValue("--fg"), dim: style.getPropertyValue("--dim"), line: style.getPropertyValue("--line"),
    mark: style.getPropertyValue("--mark"), panel: style.getPropertyValue("--panel") };
  g.font = "11px system-ui, sans-serif";
  f.at = x => f.left + (x - view.from) / (view.to - view.from) * (f.right - f.left);
  f.x = i => f.at(xs[i]);
  const rows = placeLabels(f);
  f.bottom = chart.height - 20 - 13 * rows;
  f.y = b => f.bottom - (b - low) / (high - low) * (f.bottom - f.top);
  axisX(f);
  return f;
}
// Labels below the axis: none overlaps another, so that some are in a lower row.
function placeLabels(f) {
  const labels = [];
  PHASES.forEach((name, phase) => {
    const i = L.phase.findIndex((p, k) => p === phase && !L.again[k]);
    if (i >= 0) labels.push([f.x(i), phase === 2 ? "first update" : name]);
  });
  labels.push([(f.x(D.peak) + f.x(D.peak + 1)) / 2, "peak"]);
  for (const s of D.segments) if (s.trips > 1) labels.push([f.x(s.begin), s.trips + " x " + s.name]);
  f.labels = [];
  const ends = [];
  for (const [x, text] of labels.sort((a, b) => a[0] - b[0])) {
    if (x < f.left - 1 || x > f.right + 1) continue;
    const wide = f.g.measureText(text).width, begin = Math.min(x + 3, f.right - wide);
    let row = ends.findIndex(end => end + 8 < begin);
    if (row < 0) row = ends.push(0) - 1;
    ends[row] = begin + wide;
    f.labels.push([x, begin, row, text]);
  }
  return ends.length;
}
function axisX(f) {
  const g = f.g, byTime = $("bytime").checked;
  const whole = view.to * (byTime ? 1e-12 : 1);
  const [unit, name] = !byTime ? [1, ""] : whole >= 1 ? [1e12, " s"] : whole >= 1e-3 ? [1e9, " ms"] : [1e6, " us"];
  const first = byTime ? 0 : 1; // Launches count from 1.
  const [list, digits] = ticks(view.from / unit + first, view.to / unit + first, Math.max(2, (f.right - f.left) / 90));
  g.textAlign = "center";
  for (const t of list) {
    if (!byTime && (t !== Math.round(t) || t < 1 || t > N)) continue;
    const x = f.at((t - first) * unit), text = (byTime ? t.toFixed(digits) : "launch " + t) + name;
    g.strokeStyle = f.line; g.beginPath(); g.moveTo(x, f.top); g.lineTo(x, f.bottom + 4); g.stroke();
    g.fillStyle = f.dim;
    const half = g.measureText(text).width / 2;
    if (x + half <= f.width && x - half >= 0) g.fillText(text, x, f.bottom + 15);
  }
  g.textAlign = "left";
  for (const [x, begin, row, text] of f.labels) {
    g.fillStyle = f.dim; g.fillText(text, begin, f.bottom + 28 + 13 * row);
    g.strokeStyle = f.dim; g.globalAlpha = .5;
    g.beginPath(); g.moveTo(x, f.bottom + 18); g.lineTo(x, f.bottom + 29 + 13 * row); g.stroke(); g.globalAlpha = 1;
  }
}
function axisY(f) {
  const g = f.g, [unit, name] = UNITS.find(([u]) => f.high >= u) || UNITS[3];
  const [list, digits] = ticks(f.low / unit, f.high / unit, f.bottom - f.top < 200 ? 3 : 6);
  g.textAlign = "right";
  for (const t of list) {
    const y = f.y(t * unit);
    g.strokeStyle = f.line; g.beginPath(); g.moveTo(f.left, y); g.lineTo(f.right, y); g.stroke();
    g.fillStyle = f.dim; g.fillText(t.toFixed(digits) + " " + name, f.left - 5, y + 4);
  }
}
function clipped(f, draw) {
  f.g.save(); f.g.beginPath(); f.g.rect(f.left, f.top - 6, f.right - f.left, f.bottom - f.top + 6); f.g.clip();
  draw(f.g);
  f.g.restore();
}
// Text in the chart that stays legible over anything.
function note(f, text, x, y, align) {
  const g = f.g, wide = g.measureText(text).width, left = align === "right" ? x - wide : x;
  g.globalAlpha = .8; g.fillStyle = f.panel; g.fillRect(left - 2, y - 11, wide + 4, 15);
  g.globalAlpha = 1; g.fillStyle = f.fg; g.textAlign = "left"; g.fillText(text, left, y);
}

function drawStack(chart) {
  const space = chart.space, layers = levels[space], order = shownLayers(space);
  // What persists lies below the chart where it isn't shown: bytes are those of the whole.
  const hidden = [...LAYERS.keys()].filter(k => !order.includes(k));
  const below = chart.below = hidden.reduce((sum, k) => sum + layers[k][D.peak], 0);
  let most = 1;
  for (let i = 0; i < N; ++i) most = Math.max(most, order.reduce((sum, k) => sum + layers[k][i], 0));
  const budget = space ? -1 : D.budget;
  // A budget that is far above would flatten the curve.
  const isNear = budget >= 0 && budget - below <= 1.5 * most;
  const f = frame(chart, below, below + Math.max(most, isNear ? budget - below : 0) * (chart.height < 200 ? 1.2 : 1.1));
  axisY(f);
  clipped(f, g => {
    const base = new Float64Array(N).fill(below);
    for (const k of order) {
      g.fillStyle = LAYERS[k][1];
      g.beginPath(); g.moveTo(f.x(0), f.y(base[0]));
      for (let i = 0; i < N; ++i) { const y = f.y(base[i] + layers[k][i]); g.lineTo(f.x(i), y); g.lineTo(f.x(i + 1), y); }
      for (let i = N - 1; i >= 0; --i) { const y = f.y(base[i]); g.lineTo(f.x(i + 1), y); g.lineTo(f.x(i), y); base[i] += layers[k][i]; }
      g.fill();
    }
    g.strokeStyle = f.fg;
    if (!space) {
      const x = (f.x(D.peak) + f.x(D.peak + 1)) / 2;
      g.setLineDash([2, 3]); g.beginPath(); g.moveTo(x, f.top); g.lineTo(x, f.bottom); g.stroke(); g.setLineDash([]);
    }
    if (isNear) { g.lineWidth = 1.5; g.beginPath(); g.moveTo(f.left, f.y(budget)); g.lineTo(f.right, f.y(budget)); g.stroke(); g.lineWidth = 1; }
  });
  if (space) { f.g.font = "600 12px system-ui, sans-serif"; note(f, SPACES[space], f.left + 6, f.top + 12, "left"); f.g.font = "11px system-ui, sans-serif"; }
  const peak = below + most;
  if (isNear) note(f, "budget " + bytes(budget), f.right - 4, f.y(budget) - 5, "right");
  else if (budget >= 0) note(f, `\u2191 the budget of ${bytes(budget)} is ${bytes(budget - peak)} above the peak of ${bytes(peak)}`, f.right - 4, f.top + 8, "right");
  chart.legend.innerHTML = legend(order.map(k => LAYERS[k]));
  if (!space) $("base").textContent = below ? `The axis begins at ${bytes(below)}: ${hidden.filter(k => layers[k][D.peak] > 0).map(k => LAYERS[k][0]).join(", ")}, which stay.` : "";
}

// Launches as bars on their engines' lanes. A bar by launches reaches from its start to its done in the list.
const ROW = 30;
function drawLanes(chart) {
  const used = ENGINES.map((n, e) => e).filter(e => e === 0 || L.engine.some((x, i) => x === e && !L.done[i]));
  chart.height = 8 + used.length * ROW + 62;
  const f = frame(chart, 0, 1), byTime = $("bytime").checked, shown = new Set(), phases = new Set();
  f.used = used; f.bars = [];
  let again = false, waits = false;
  clipped(f, g => {
    const bar = (lane, x0, x1, colour, i) => {
      g.fillStyle = colour;
      g.fillRect(x0, f.top + used.indexOf(lane) * ROW + 5, Math.max(x1 - x0, .7), ROW - 10);
      f.bars.push([lane, x0, Math.max(x1, x0 + .7), i]);
    };
    for (let i = 0; i < N; ++i) {
      const from = byTime ? f.at(L.begin[i]) : f.x(i);
      if (L.done[i]) {
        if (L.end[i] > L.begin[i]) { waits = true; bar(0, from, byTime ? f.at(L.end[i]) : f.x(i + 1), WAIT, i); }
        continue;
      }
      if (byTime && L.end[i] === L.begin[i]) continue;
      const to = byTime ? f.at(L.end[i]) : f.x((L.other[i] < 0 ? i : L.other[i]) + 1);
      if (L.moved[i]) shown.add(L.group[i]); else if (L.again[i]) again = true; else phases.add(L.phase[i]);
      bar(L.engine[i], from, to, L.moved[i] ? LAYERS[L.group[i]][1] : L.again[i] ? LAYERS[AGAIN][1] : PHASE_COLOURS[L.phase[i]], i);
    }
  });
  f.g.textAlign = "right"; f.g.fillStyle = f.fg;
  used.forEach((e, k) => f.g.fillText(ENGINES[e], f.left - 5, f.top + k * ROW + ROW / 2 + 4));
  chart.legend.innerHTML = legend([...[...phases].sort().map(p => [PHASES[p], PHASE_COLOURS[p]]), ...(again ? [LAYERS[AGAIN]] : []),
    ...(waits ? [["the kernels wait", WAIT]] : []), ...[...shown].sort((a, b) => a - b).map(k => LAYERS[k])]);
}

function drawArena(chart) {
  const space = chart.space, all = space || $("persistent").checked, shown = [];
  for (let t = 0; t < T.value.length; ++t)
    if (T.offset[t] >= 0 && T.begin[t] < T.end[t] && V.space[T.value[t]] === space && (all || V.layer[T.value[t]] >= PERSISTENT)) shown.push(t);
  // Offsets that no shown tensor has are left out: rows of [offset, end, where].
  const rows = [];
  for (const t of [...shown].sort((a, b) => T.offset[a] - T.offset[b])) {
    const from = T.offset[t], to = from + V.bytes[T.value[t]], last = rows[rows.length - 1];
    if (last && from <= last[1]) last[1] = Math.max(last[1], to);
    else rows.push([from, to, last ? last[2] + last[1] - last[0] : 0]);
  }
  const end = rows[rows.length - 1];
  const f = frame(chart, 0, (end ? end[2] + end[1] - end[0] : 1) * (space ? 1.18 : 1));
  axisY(f);
  const squeezed = offset => {
    let a = 0, b = rows.length - 1;
    while (a < b) { const m = (a + b + 1) >> 1; if (rows[m][0] <= offset) a = m; else b = m - 1; }
    return rows[a][2] + offset - rows[a][0];
  };
  f.place = new Map(); f.shown = shown;
  clipped(f, g => {
    for (const t of shown) {
      const v = T.value[t], x0 = Math.max(f.x(T.begin[t]), f.left - 2), x1 = Math.min(f.x(T.end[t]), f.right + 2);
      const at = squeezed(T.offset[t]), y1 = f.y(at), y0 = f.y(at + V.bytes[v]);
      f.place.set(t, at);
      if (x1 < f.left || x0 > f.right) continue;
      g.fillStyle = LAYERS[V.layer[v]][1];
      g.fillRect(x0, y0, Math.max(x1 - x0, .6), Math.max(y1 - y0, .4));
      if (x1 - x0 > 4 && y1 - y0 > 3) {
        g.globalAlpha = .35; g.strokeStyle = dark.matches ? "#000" : "#fff"; g.lineWidth = .7;
        g.strokeRect(x0, y0, x1 - x0, y1 - y0); g.globalAlpha = 1; g.lineWidth = 1;
      }
      if (x1 - x0 > 90 && y1 - y0 > 13) {
        g.fillStyle = "#101418"; g.textAlign = "left";
        const name = V.name[v], fits = Math.floor((x1 - x0 - 8) / 6);
        g.fillText(name.length > fits ? "\u2026" + name.slice(name.length - fits + 1) : name, x0 + 4, (y0 + y1) / 2 + 4);
      }
    }
  });
  if (space) { f.g.font = "600 12px system-ui, sans-serif"; note(f, SPACES[space], f.left + 6, f.top + 12, "left"); }
  const layers = new Set(shown.map(t => V.layer[T.value[t]]));
  chart.legend.innerHTML = legend([...LAYERS.keys()].filter(k => layers.has(k)).map(k => LAYERS[k]));
}

// The tensors that a chart shows at a launch, from its lower edge up: [tensor, from, to] in the chart's bytes.
function tensorsAt(chart, i) {
  const list = [];
  if (chart.kind === "arena")
    for (const t of chart.f.shown) {
      const at = chart.f.place.get(t);
      if (T.begin[t] <= i && i < T.end[t]) list.push([t, at, at + V.bytes[T.value[t]]]);
    }
  if (chart.kind === "stack") {
    let at = chart.below;
    for (const k of shownLayers(chart.space)) {
      let inside = at;
      const alive = [];
      for (let t = 0; t < T.value.length; ++t) {
        const v = T.value[t];
        if (V.layer[v] === k && V.space[v] === chart.space && T.alone[t] <= i && i < T.end[t]) alive.push(t);
      }
      alive.sort((a, b) => V.bytes[T.value[b]] - V.bytes[T.value[a]]);
      for (const t of alive) { list.push([t, inside, inside + V.bytes[T.value[t]]]); inside += V.bytes[T.value[t]]; }
      at += levels[chart.space][k][i];
    }
  }
  return list.sort((a, b) => a[1] - b[1]);
}
function launchAt(f, x) {
  if (x < f.left || x > f.right) return -1;
  const want = view.from + (x - f.left) / (f.right - f.left) * (view.to - view.from);
  let a = 0, b = N - 1;
  while (a < b) { const m = (a + b + 1) >> 1; if (xs[m] <= want) a = m; else b = m - 1; }
  return a;
}
// The launch and the tensor under a point; -1: none.
function under(chart, x, y) {
  const f = chart.f;
  let i = launchAt(f, x), tensor = -1;
  if (i < 0) return [-1, -1];
  if (chart.kind !== "lanes") {
    const b = f.low + (f.bottom - y) / (f.bottom - f.top) * (f.high - f.low);
    for (const [t, from, to] of tensorsAt(chart, i)) if (from <= b && b < to) tensor = t;
    return [i, tensor];
  }
  const lane = f.used[Math.floor((y - f.top) / ROW)];
  let distance = 3;
  i = -1;
  for (const [of, x0, x1, at] of f.bars) {
    const away = Math.max(x0 - x, x - x1, 0);
    if (of === lane && away < distance) { distance = away; i = at; }
  }
  return [i, -1];
}
// The value that a launch moves, or waits for.
const movedBy = i => L.value[L.done[i] ? L.other[i] : i];

// The cursor's launch and the pinned tensor, over the chart.
function drawOver(chart) {
  const f = chart.f, g = chart.over.getContext("2d");
  g.clearRect(0, 0, f.width, chart.height);
  g.save(); g.beginPath(); g.rect(f.left, 0, f.right - f.left, f.bottom + 4); g.clip();
  for (let t = 0; t < T.value.length; ++t) {
    const v = T.value[t], x0 = f.x(T.begin[t]), x1 = Math.max(f.x(T.end[t]), x0 + 2);
    if (V.content[v] !== pinned || T.begin[t] >= T.end[t] || x1 < f.left || x0 > f.right) continue;
    g.strokeStyle = g.fillStyle = f.mark; g.lineWidth = 2;
    if (chart.kind === "stack" && V.space[v] === chart.space) {
      g.globalAlpha = .16; g.fillRect(x0, f.top, x1 - x0, f.bottom - f.top);
      g.globalAlpha = 1; g.fillRect(x0, f.bottom - 3, x1 - x0, 5);
    }
    if (chart.kind === "arena" && f.place.has(t)) {
      const y = f.y(f.place.get(t) + V.bytes[v]), tall = f.y(f.place.get(t)) - y;
      g.strokeRect(x0 - 1, y - 1, x1 - x0 + 2, Math.max(tall, 2) + 2);
    }
  }
  if (chart.kind === "lanes")
    for (const [lane, x0, x1, i] of f.bars)
      if (movedBy(i) >= 0 && V.content[movedBy(i)] === pinned) {
        g.strokeStyle = f.mark; g.lineWidth = 2;
        g.strokeRect(x0 - 1, f.top + f.used.indexOf(lane) * ROW + 3, x1 - x0 + 2, ROW - 6);
      }
  if (chart.isUsed) {
    g.globalAlpha = 1; g.lineWidth = 1; g.strokeStyle = f.fg;
    const x = (f.x(cursor) + f.x(cursor + 1)) / 2;
    g.beginPath(); g.moveTo(x, f.top); g.lineTo(x, f.bottom); g.stroke();
    const chosen = tensorsAt(chart, cursor)[chart.chosen];
    if (chosen) { g.lineWidth = 2; g.strokeRect(x - 5, f.y(chosen[2]), 10, Math.max(f.y(chosen[1]) - f.y(chosen[2]), 3)); }
  }
  g.restore();
}
