// Steps against the roofline, the trace of an iteration, the memory plan.

const stepsOf = (profile, names) => profile.name.map((name, i) => ({
  name: names[name],
  kind: names[profile.kind[i]],
  phase: names[profile.phase[i]],
  lane: names[profile.lane[i]],
  bound: names[profile.bound_by[i]],
  seconds: profile.seconds[i],
  roofline: profile.roofline[i],
  flops: profile.flops_per_second[i],
  bytes: profile.bytes_per_second[i],
}));

function kindsFigure(run) {
  if (!run.profile) return null;
  const { kinds } = run.profile;
  const { factor, unit } = timeUnit(kinds.map((kind) => kind.seconds));
  const bar = (label, value, index) =>
    ({ label, data: kinds.map((kind) => factor * kind[value]), backgroundColor: seriesColour(index), maxBarThickness: 12 });
  const time = { unit, csvUnit: "s", text: (value) => plain(factor * value) };
  const all = kinds.reduce((sum, kind) => sum + kind.seconds, 0);
  return {
    label: `Bars of time per kind of step, measured and by the roofline; the longest is ${words(kinds[0]?.name ?? "")}.`,
    table: {
      caption: `Time by kind of step of ${run.label}`,
      columns: [{ name: "Kind" }, { name: "Steps", text: count }, { name: "Measured", ...time }, { name: "Roofline", ...time },
                { name: "Share", text: (value) => percent(value) }],
      rows: kinds.map((kind) => [words(kind.name), kind.steps, kind.seconds, kind.roofline_seconds, kind.seconds / all]),
    },
    config: {
      type: "bar",
      data: { labels: kinds.map((kind) => words(kind.name)), datasets: [bar("measured", "seconds", 0), bar("roofline", "roofline_seconds", 7)] },
      options: {
        indexAxis: "y",
        scales: { x: axis(`${unit} per iteration`, { beginAtZero: true }), y: bars() },
        plugins: { legend: { labels: { pointStyle: "rect" } },
                   tooltip: { callbacks: { label: ({ dataset, raw }) => `${dataset.label}: ${plain(raw)} ${unit}` } } },
      },
    },
  };
}

function rooflineFigure(run, names) {
  if (!run.profile) return null;
  const all = stepsOf(run.profile, names);
  const drawn = all.filter((step) => step.roofline > 0 && step.seconds > 0);
  if (!drawn.length) return null;
  const times = drawn.flatMap((step) => [step.seconds, step.roofline]);
  const { factor, unit } = timeUnit([[...times].sort((a, b) => a - b)[times.length >> 1]]);
  const bounds = ["compute", "bandwidth", "latency"].filter((bound) => drawn.some((step) => step.bound === bound));
  const datasets = bounds.map((bound, i) => ({
    label: `held by ${bound}`,
    data: drawn.filter((step) => step.bound === bound).map((step) => ({ x: factor * step.roofline, y: factor * step.seconds, step })),
    backgroundColor: faded(namedColour(bound), 0.55),
    borderColor: namedColour(bound),
    pointStyle: kMarkers[i],
    pointRadius: 4,
  }));
  const [low, high] = [factor * Math.min(...times), factor * Math.max(...times)];
  datasets.push({ type: "line", ...idealLine("roofline", [{ x: low / 1.2, y: low / 1.2 }, { x: high * 1.2, y: high * 1.2 }]) });
  const tick = (value) => plain(value, 1);
  const time = { unit: "µs", csvUnit: "s", text: (value) => plain(1e6 * value) };
  return {
    label: `Points of ${plural(drawn.length, "step")}, measured time over roofline time.`,
    table: {
      caption: `Steps of ${run.label}, those first that lose most against the roofline`,
      columns: [{ name: "Step" }, { name: "Kind" }, { name: "Held by" }, { name: "Measured", ...time }, { name: "Roofline", ...time },
                { name: "Lost", ...time }, { name: "Achieved", unit: "FLOP/s", text: (value) => rate(value, "") },
                { name: "Achieved", unit: "B/s", text: (value) => rate(value, "") }],
      rows: [...drawn].sort((a, b) => b.seconds - b.roofline - (a.seconds - a.roofline)).map((step) =>
        [step.name, words(step.kind), step.bound, step.seconds, step.roofline, step.seconds - step.roofline, step.flops, step.bytes]),
    },
    config: {
      type: "scatter",
      data: { datasets },
      options: {
        scales: { x: logAxis(`roofline time, ${unit}`, [low, high], tick), y: logAxis(`measured time, ${unit}`, [low, high], tick) },
        plugins: { tooltip: { callbacks: { label: ({ raw }) => (raw.step
          ? [raw.step.name, `${seconds(raw.step.seconds)}, roofline ${seconds(raw.step.roofline)}`] : "roofline") } } },
      },
    },
  };
}

const rectanglesConfig = (data, x, y, tooltip, phases) => ({
  type: "rectangles",
  data: { datasets: [{ data }] },
  options: {
    layout: { padding: { top: phases.length ? 16 : 0 } },
    scales: { x: { type: "linear", ticks: { includeBounds: false }, ...x }, y: { type: "linear", ticks: { includeBounds: false }, ...y } },
    plugins: { legend: { display: false }, ranges: { phases },
               tooltip: { displayColors: false, callbacks: { title: ([item]) => item.raw.title, label: ({ raw }) => tooltip(raw) } } },
  },
});

function traceFigure(run, names) {
  const { trace } = run;
  if (!trace) return null;
  const lanes = trace.lanes.map((name, lane) => ({ name, spans: trace.lane.filter((one) => one === lane).length })).reverse();
  const heightOf = (lane) => trace.lanes.length - 1 - lane;
  const end = Math.max(...trace.begin.map((begin, i) => begin + trace.seconds[i]));
  const { factor, unit } = timeUnit([end]);
  const spans = trace.name.map((name, i) => ({
    x: factor * trace.begin[i], width: factor * trace.seconds[i], y: heightOf(trace.lane[i]) + 0.12, height: 0.76,
    title: names[name], fill: names[trace.phase[i]], seconds: trace.seconds[i], lane: trace.lanes[trace.lane[i]],
  }));
  showLegend("trace", [...new Set(spans.map((span) => span.fill))]);
  document.getElementById("trace-note").textContent =
    `Iteration ${trace.iteration} of the traced ones, that of median length, ${seconds(end)}, all lanes of ${trace.process}.` +
    (trace.left_out ? ` The ${plural(trace.left_out, "shortest step")} are left out.` : "");
  const laneAxis = {
    min: 0, max: lanes.length, grid: { display: false },
    afterBuildTicks: (scale) => { scale.ticks = lanes.map((_, i) => ({ value: i + 0.5 })); },
    ticks: { callback: (value) => lanes[value - 0.5]?.name + (lanes[value - 0.5]?.spans ? "" : " (none)") },
  };
  const time = { unit, csvUnit: "s", text: (value) => plain(factor * value, 5) };
  return {
    label: `Time line of ${plural(spans.length, "step")} on the lanes ${trace.lanes.join(", ")}.`,
    table: {
      caption: `Trace of an iteration of ${run.label}`,
      columns: [{ name: "Step" }, { name: "Lane" }, { name: "Phase" }, { name: "Begin", ...time }, { name: "Duration", ...time }],
      rows: trace.name.map((name, i) => [names[name], trace.lanes[trace.lane[i]], words(names[trace.phase[i]]), trace.begin[i], trace.seconds[i]]),
    },
    config: rectanglesConfig(spans, axis(unit, { min: Math.min(0, ...spans.map(({ x }) => x)), max: factor * end }), laneAxis,
                             (span) => `${span.lane}, ${seconds(span.seconds)}`, []),
  };
}

// The part of the trace that is shown: [from, to] of the whole, as shares.
function setUpZoom() {
  const shown = { from: 0, to: 1, chart: null, whole: null };
  const changes = {
    in: (width) => [shown.from + width / 4, shown.to - width / 4],
    out: (width) => [shown.from - width / 2, shown.to + width / 2],
    back: (width) => [shown.from - width / 2, shown.to - width / 2],
    on: (width) => [shown.from + width / 2, shown.to + width / 2],
    all: () => [0, 1],
  };
  document.querySelector("#trace .zoom").addEventListener("click", ({ target }) => {
    const chart = charts.trace;
    if (!chart || !changes[target.dataset.zoom]) return;
    const { x } = chart.options.scales;
    if (shown.chart !== chart) Object.assign(shown, { from: 0, to: 1, chart, whole: [x.min, x.max] });
    const [from, to] = changes[target.dataset.zoom](shown.to - shown.from);
    const width = Math.min(to - from, 1);
    shown.from = Math.min(Math.max(from, 0), 1 - width);
    shown.to = shown.from + width;
    const [low, high] = shown.whole;
    x.min = low + shown.from * (high - low);
    x.max = low + shown.to * (high - low);
    chart.update();
  });
}

function planFigure(run, names) {
  const plan = run.memory;
  if (!plan) return null;
  const factor = plan.arena_bytes >= 2 ** 31 ? 2 ** 30 : 2 ** 20;
  const unit = factor === 2 ** 30 ? "GiB" : "MiB";
  const blocks = plan.name.map((name, i) => ({
    x: plan.first[i], width: plan.last[i] - plan.first[i] + 1, y: plan.offset[i] / factor, height: plan.bytes[i] / factor,
    title: names[name] + (plan.buffers[i] > 1 ? ` and ${plural(plan.buffers[i] - 1, "smaller one")}` : ""),
    fill: names[plan.role[i]], bytes: plan.bytes[i], first: plan.first[i], last: plan.last[i],
  }));
  showLegend("plan", [...new Set(blocks.map((block) => block.fill))]);
  document.getElementById("plan-note").textContent =
    `${bytes(plan.arena_bytes)} in one arena: which bytes each buffer holds, over the ${count(plan.steps)} steps of an iteration.` +
    (plan.left_out ? ` ${plural(plan.left_out, "buffer")} too small to be seen ${plan.left_out === 1 ? "is" : "are"} left out.` : "");
  return {
    label: `Picture of ${plural(blocks.length, "block")} of memory over ${plural(plan.steps, "step")}, ${bytes(plan.arena_bytes)} in all.`,
    table: {
      caption: `Memory plan of ${run.label}`,
      columns: [{ name: "Buffer" }, { name: "Role" }, { name: "Offset", unit: "MiB", csvUnit: "B", text: (value) => plain(value / 2 ** 20, 5) },
                { name: "Size", unit: "MiB", csvUnit: "B", text: (value) => plain(value / 2 ** 20) },
                { name: "First step", text: count }, { name: "Last step", text: count }],
      rows: blocks.map((block, i) => [block.title, words(block.fill), plan.offset[i], block.bytes, block.first, block.last]),
    },
    config: rectanglesConfig(
      blocks, axis("step of the iteration", { min: 0, max: plan.steps }), axis(unit, { min: 0, max: plan.arena_bytes / factor }),
      (block) => [`${words(block.fill)}, ${bytes(block.bytes)}`, `steps ${block.first} to ${block.last}`],
      plan.phases.map((phase) => [phase.first, phase.last + 1, phase.name])),
  };
}

// Parameters and their like fill most of the arena in small batches: without them the rest can be seen.
function setUpPlanPart() {
  document.getElementById("plan-part").addEventListener("change", ({ target }) => {
    const chart = charts.plan;
    if (!chart) return;
    const { x, y } = chart.options.scales;
    const passing = chart.data.datasets[0].data.filter((block) => block.width < x.max);
    y.min = target.checked && passing.length ? Math.min(...passing.map((block) => block.y)) : 0;
    chart.update();
  });
}
