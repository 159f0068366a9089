// When every step of an iteration began and ended, lane by lane.

function traceFigure(run, names) {
  const {trace} = run;
  if (!trace) return null;
  const lanes =
      trace.lanes.map((name, lane) => ({name, spans: trace.lane.filter((one) => one === lane).length}))
          .reverse();
  const heightOf = (lane) => trace.lanes.length - 1 - lane;
  const end = Math.max(...trace.begin.map((begin, i) => begin + trace.seconds[i]));
  const {factor, unit} = timeUnit([end]);
  const spans = trace.name.map((name, i) => ({
                                 x: factor * trace.begin[i],
                                 width: factor * trace.seconds[i],
                                 y: heightOf(trace.lane[i]) + 0.12,
                                 height: 0.76,
                                 title: names[name],
                                 fill: names[trace.phase[i]],
                                 seconds: trace.seconds[i],
                                 lane: trace.lanes[trace.lane[i]],
                               }));
  showLegend('trace', [...new Set(spans.map((span) => span.fill))]);
  document.getElementById('trace-note').textContent =
      `Iteration ${trace.iteration} of the traced ones, that of median length, ${
          seconds(end)}, all lanes of ${trace.process}.` +
      (trace.left_out ? ` The ${plural(trace.left_out, 'shortest step')} are left out.` : '');
  const laneAxis = {
    min: 0,
    max: lanes.length,
    grid: {display: false},
    afterBuildTicks: (scale) => {
      scale.ticks = lanes.map((_, i) => ({value: i + 0.5}));
    },
    ticks: {callback: (value) => lanes[value - 0.5]?.name + (lanes[value - 0.5]?.spans ? '' : ' (none)')},
  };
  const time = {unit, csvUnit: 's', text: (value) => plain(factor * value, 5)};
  return {
    label: `Time line of ${plural(spans.length, 'instruction')} on the lanes ${trace.lanes.join(', ')}.`,
    table: {
      caption: `Trace of an iteration of ${run.label}`,
      columns: [
        {name: 'Instruction'}, {name: 'Lane'}, {name: 'Phase'}, {name: 'Begin', ...time},
        {name: 'Duration', ...time}
      ],
      rows: trace.name.map(
          (name, i) =>
              [names[name], trace.lanes[trace.lane[i]], words(names[trace.phase[i]]), trace.begin[i],
               trace.seconds[i]]),
    },
    config: rectanglesConfig(
        spans, axis(unit, {min: Math.min(0, ...spans.map(({x}) => x)), max: factor * end}), laneAxis,
        (span) => `${span.lane}, ${seconds(span.seconds)}`, []),
  };
}

// The part of the trace that is shown: [from, to] of the whole, as shares.
function setUpZoom() {
  const shown = {from: 0, to: 1, chart: null, whole: null};
  const changes = {
    in : (width) => [shown.from + width / 4, shown.to - width / 4],
    out: (width) => [shown.from - width / 2, shown.to + width / 2],
    back: (width) => [shown.from - width / 2, shown.to - width / 2],
    on: (width) => [shown.from + width / 2, shown.to + width / 2],
    all: () => [0, 1],
  };
  document.querySelector('#trace .zoom').addEventListener('click', ({target}) => {
    const chart = charts.trace;
    if (!chart || !changes[target.dataset.zoom]) return;
    const {x} = chart.options.scales;
    if (shown.chart !== chart) Object.assign(shown, {from: 0, to: 1, chart, whole: [x.min, x.max]});
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
